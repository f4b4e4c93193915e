#include "app/signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

namespace troupe {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// A signal that is blocked is queued even when it is ignored, and a signalfd would read it.
sigset_t shutdown_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    if (!is_ignored(signal)) sigaddset(&set, signal);
  return set;
}

void watch(int signals, int stop, const std::function<void(int)>& handler) {
  pollfd descriptors[] = {{signals, POLLIN, 0}, {stop, POLLIN, 0}};
  for (;;) {
    if (poll(descriptors, 2, -1) < 0) continue;
    if (descriptors[1].revents != 0) return;
    signalfd_siginfo info;
    if (read(signals, &info, sizeof info) == sizeof info) handler(static_cast<int>(info.ssi_signo));
  }
}

}  // namespace

BlockedSignals::BlockedSignals() : previous_mask_(), previous_pipe_() {
  const sigset_t set = shutdown_signals();
  pthread_sigmask(SIG_BLOCK, &set, &previous_mask_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &previous_pipe_);
}

BlockedSignals::~BlockedSignals() {
  sigaction(SIGPIPE, &previous_pipe_, nullptr);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

SignalWatcher::SignalWatcher(std::function<void(int signal)> handler) {
  const sigset_t set = shutdown_signals();
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  stop_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([signals = signals_, stop = stop_, handler = std::move(handler)] {
    watch(signals, stop, handler);
  });
}

SignalWatcher::~SignalWatcher() {
  const std::uint64_t one = 1;
  [[maybe_unused]] auto written = write(stop_, &one, sizeof one);
  thread_.join();
  close(signals_);
  close(stop_);
}

}  // namespace troupe
