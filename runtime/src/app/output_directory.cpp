#include "app/output_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "app/paths.hpp"
#include "troupe/files.hpp"
#include "troupe/log.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = ".lock";

Error in_use(const fs::path& directory) {
  return bad_input(directory.string(), "another run writes here",
                   "wait for its end, or name another directory with --out");
}

/// False when another process holds the lock. A file system that cannot lock is no reason not to
/// run on it.
bool try_lock(int fd) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  log_warning("output", "cannot lock {}: {}; do not start a second run there", lock_name,
              std::strerror(errno));
  return true;
}

/// What a lock file may name: a file of the directory itself.
bool is_file_name(const std::string& name) {
  return !name.empty() && name != lock_name && name != "." && name != ".." &&
         name.find('/') == std::string::npos;
}

std::set<std::string> results_of_last_run(const fs::path& lock) {
  std::set<std::string> names;
  std::ifstream lines(lock);
  for (std::string name; std::getline(lines, name);)
    if (is_file_name(name)) names.insert(name);
  return names;
}

/// Whether `name` is what a run that was killed left of writing one of `results`.
bool is_half_written(const std::string& name, const std::set<std::string>& results) {
  const std::string mark = ".tmp.";
  const auto at = name.rfind(mark);
  if (at == std::string::npos || results.count(name.substr(0, at)) == 0) return false;
  const std::string pid = name.substr(at + mark.size());
  return !pid.empty() && pid.find_first_not_of("0123456789") == std::string::npos;
}

void remove_half_written(const fs::path& directory, const std::set<std::string>& results) {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (is_half_written(entry.path().filename().string(), results))
      leftovers.push_back(entry.path());
  for (const fs::path& leftover : leftovers) fs::remove(leftover, error);
}

bool is_one_of(const fs::path& file, const std::vector<fs::path>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const fs::path& input) {
    std::error_code error;
    return fs::equivalent(file, input, error);
  });
}

}  // namespace

fs::path previous_name(const fs::path& file, int number) {
  std::string name = file.stem().string() + ".previous";
  if (number > 1) name += "." + std::to_string(number);
  return file.parent_path() / (name + file.extension().string());
}

OutputDirectory::OutputDirectory(fs::path path) : path_(std::move(path)) {}

OutputDirectory::~OutputDirectory() {
  if (lock_ >= 0) close(lock_);
}

Result<void> OutputDirectory::check() const {
  TROUPE_TRY(check_creatable(path_));
  const int fd = open((path_ / lock_name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};  // no run has written here yet
  const bool is_free = try_lock(fd);
  close(fd);
  return is_free ? Result<void>() : in_use(path_);
}

Result<void> OutputDirectory::take(const OutputFiles& files) {
  if (lock_ >= 0) return {};
  TROUPE_TRY(make_directory(path_));
  TROUPE_TRY(lock());
  std::set<std::string> names(files.results.begin(), files.results.end());
  std::string list;
  for (const std::string& name : names) list += name + "\n";
  names.merge(results_of_last_run(path_ / lock_name));
  for (const std::string& name : names) TROUPE_TRY(put_aside(name, files.inputs));
  remove_half_written(path_, names);
  // In place, not by renaming: the lock belongs to the file that is there.
  std::ofstream lock_file(path_ / lock_name, std::ios::trunc);
  lock_file << list;
  if (!lock_file.flush())
    return bad_input((path_ / lock_name).string(), "cannot write",
                     "make room there, or name another directory with --out");
  return {};
}

Result<void> OutputDirectory::lock() {
  const fs::path file = path_ / lock_name;
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0)
    return bad_input(file.string(), std::string("cannot be created: ") + std::strerror(errno),
                     "name another directory with --out");
  if (!try_lock(fd)) {
    close(fd);
    return in_use(path_);
  }
  lock_ = fd;
  return {};
}

Result<void> OutputDirectory::put_aside(const std::string& name,
                                        const std::vector<fs::path>& inputs) const {
  const fs::path file = path_ / name;
  std::error_code error;
  const auto type = fs::symlink_status(file, error).type();
  if (type == fs::file_type::not_found || type == fs::file_type::directory) return {};
  int number = 1;
  while (is_one_of(previous_name(file, number), inputs)) ++number;
  const fs::path target = previous_name(file, number);
  fs::rename(file, target, error);
  if (error)
    return bad_input(file.string(),
                     "cannot be renamed to " + target.filename().string() + ": " + error.message(),
                     "name another directory with --out");
  return {};
}

}  // namespace troupe
