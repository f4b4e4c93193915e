#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "actor/version.hpp"
#include "app/launcher.hpp"
#include "app/machine.hpp"
#include "app/paths.hpp"
#include "blas_probe.hpp"
#include "common.hpp"
#include "config/loader.hpp"
#include "core/host_port.hpp"
#include "fetch_status.hpp"
#include "try_listen.hpp"

namespace troupe::cli {
namespace {

struct Options {
  std::string node_file;
  bool blas_probe = false;
};

/// Prints findings, one a line, and remembers the worst.
class Report {
 public:
  void ok(const std::string& text) { print("ok  ", text); }
  void warn(const std::string& text, const std::string& mend) { print("warn", text + "; " + mend); }
  void bad(const std::string& text, const std::string& mend) {
    failed_ = true;
    print("bad ", mend.empty() ? text : text + "; " + mend);
  }
  void bad(const Error& error, const std::string& otherwise) {
    bad(error.to_string(), error.hint.empty() ? otherwise : "");
  }
  bool failed() const { return failed_; }

 private:
  static void print(const char* verdict, const std::string& text) {
    std::printf("%s  %s\n", verdict, text.c_str());
    std::fflush(stdout);
  }
  bool failed_ = false;
};

std::string gibibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1u << 30));
}

void check_machine(const Machine& machine, Report& report) {
  const std::string cpu =
      fmt::format("cpu: {}, {}", machine.cpu_model.empty() ? "unknown model" : machine.cpu_model,
                  instruction_set(machine));
  if (blas_core_type(machine))
    report.ok(cpu);
  else
    report.warn(cpu, "without AVX2 training is slow; use another machine for large stages");
  report.ok(fmt::format("cores: {}", machine.cores));
  const std::string memory =
      fmt::format("memory: {}, {} available", gibibytes(machine.memory_bytes),
                  gibibytes(machine.available_memory_bytes));
  if (machine.available_memory_bytes < (1u << 30))
    report.warn(memory, "end other programs before a job starts here");
  else
    report.ok(memory);
}

/// With the environment that a worker would get, and without, so that the effect shows.
void check_blas(const Machine& machine, const Environment& of_node, Report& report) {
  const Environment base = current_environment();
  const Environment chosen = worker_environment(base, {of_node}, machine);
  auto measured = probe_blas(chosen);
  if (!measured) {
    report.bad(measured.error(), "install libopenblas0-openmp");
    return;
  }
  const std::string speed =
      fmt::format("blas: {}, kernel {}, {:.0f} GFLOP/s float32, {:.0f} float64", measured->library,
                  measured->kernel, measured->float32_gflops, measured->float64_gflops);
  if (measured->kernel == "unknown")
    report.warn(speed, "install libopenblas0-openmp and choose it with update-alternatives");
  else
    report.ok(speed);
  const auto core_type = chosen.find("OPENBLAS_CORETYPE");
  if (core_type == chosen.end() || base.count("OPENBLAS_CORETYPE") != 0) return;
  auto own_choice = probe_blas(base);
  if (own_choice && own_choice->float32_gflops < 0.7 * measured->float32_gflops)
    report.ok(
        fmt::format("blas: workers get OPENBLAS_CORETYPE={}; on its own OpenBLAS takes {} "
                    "and reaches {:.0f} GFLOP/s float32",
                    core_type->second, own_choice->kernel, own_choice->float32_gflops));
}

void check_threads(const Machine& machine, const Environment& environment, Report& report) {
  auto threads = environment.find("OMP_NUM_THREADS");
  if (threads == environment.end()) {
    report.ok("threads: as each job says");
  } else if (std::strtoul(threads->second.c_str(), nullptr, 10) > machine.cores) {
    report.warn(
        fmt::format("threads: OMP_NUM_THREADS={} on {} cores", threads->second, machine.cores),
        "unset it or set at most the number of cores");
  } else {
    report.ok("threads: OMP_NUM_THREADS=" + threads->second);
  }
}

void check_plugins(const std::vector<std::string>& configured, Report& report) {
  auto plugins = make_plugin_host(configured);
  std::string directories;
  for (const auto& directory : plugins->directories())
    directories += (directories.empty() ? "" : ", ") + directory.string();
  const auto found = plugins->list();
  if (found.empty())
    report.bad("plugins: none in " + directories, "set TROUPE_PLUGIN_PATH or plugin_directories");
  for (const auto& entry : found) {
    auto loaded = plugins->load(entry.first);
    if (loaded)
      report.ok("plugin: " + entry.first);
    else
      report.bad(loaded.error(), "install the plugin that belongs to this version of troupe");
  }
}

/// Who has the port: a launcher says so itself.
void explain_taken_port(const std::string& host, std::uint16_t port, Report& report) {
  const bool everywhere = host == "0.0.0.0" || host == "::";
  const std::string address = to_string(HostPort{everywhere ? "127.0.0.1" : host, port});
  const auto status = fetch_status(address, std::chrono::seconds(3));
  if (status)
    report.ok(fmt::format("port: the launcher of node {} already runs on {}", status->name(),
                          to_string(HostPort{host, port})));
  else
    report.bad(fmt::format("port: another program listens on {}", to_string(HostPort{host, port})),
               "stop it, or set another `port` in the node file");
}

void check_port(const std::string& host, std::uint16_t port, Report& report) {
  const std::string address = to_string(HostPort{host, port});
  const ListenFailure failure = try_listen(host, port);
  switch (failure.error) {
    case 0: report.ok("port: " + address + " is free"); break;
    case EADDRINUSE: explain_taken_port(host, port, report); break;
    case EADDRNOTAVAIL:
      report.bad(fmt::format("port: this machine has no address {} ({})", host, failure.text),
                 "set `host` to one of those that `ip address` lists");
      break;
    default:
      report.bad(fmt::format("port: cannot listen on {}: {}", address, failure.text),
                 "set another `host` or `port` in the node file");
  }
}

void check_node(const runtime::v1::Node& node, const std::string& file, Report& report) {
  report.ok("node file: " + file);
  const std::string host = node.host().empty() ? "127.0.0.1" : node.host();
  check_port(host, static_cast<std::uint16_t>(node.has_port() ? node.port() : default_node_port),
             report);
  if (is_loopback(host))
    report.ok("network: listens on " + host + ", this machine only");
  else if (node.insecure())
    report.warn(
        "network: listens on " + host + " without TLS",
        "anyone who can reach the port can run jobs here; trust the network or use loopback");
  else
    report.bad("network: " + host + " is beyond this machine and there is no TLS",
               "use host 127.0.0.1, or set `insecure: true` on a network you trust");
}

int examine(const Options& options) {
  if (options.blas_probe) return run_blas_probe();
  Report report;
  runtime::v1::Node node;
  if (!options.node_file.empty()) {
    auto loaded = load_node(options.node_file, {});
    if (!loaded) return cli::report(loaded.error());
    node = *loaded;
    check_node(node, options.node_file, report);
  }
  report.ok(fmt::format("troupe: {}", version()));
  const Machine machine = read_machine();
  const Environment of_node(node.environment().begin(), node.environment().end());
  check_machine(machine, report);
  check_blas(machine, of_node, report);
  check_threads(machine, worker_environment(current_environment(), {of_node}, machine), report);
  check_plugins({node.plugin_directories().begin(), node.plugin_directories().end()}, report);
  return report.failed() ? exit_code(ErrorCode::bad_input) : 0;
}

}  // namespace

void add_doctor_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("doctor", "Examines this machine and says how to mend what is wrong");
  command->add_option("node", options->node_file, "Node file to examine as well");
  command->add_flag("--blas-probe", options->blas_probe)->group("");  // the measuring child
  command->callback([options, &action] { action = [options] { return examine(*options); }; });
}

}  // namespace troupe::cli
