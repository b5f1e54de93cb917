#include "trainer/solver/signals.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

#include "trainer/base/own_file.h"
#include "trainer/base/spin.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr std::array kSignals = {SIGINT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};
constexpr int64_t kOneSignal = 500'000'000;  // nanoseconds within which the same one counts once

// Written by the handler: lock-free atomics are what a handler may touch.
std::atomic<int> g_effects[kSignals.size()];
std::atomic<bool> g_snapshot{false};
std::atomic<int> g_stop_signal{0};
std::atomic<int64_t> g_stop_time{0};
std::atomic<bool> g_running{false};  // there is an iteration to finish and something to save
std::atomic<int> g_stop_exit_code{static_cast<int>(ErrorCode::kStopped)};
struct sigaction g_before[kSignals.size()];

// As if the signal were not handled.
void End(int signal) {
  RemoveOwnFile();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

// Whether it says only that the time of the job is nearly over.
bool IsWarning(int signal) { return signal == SIGUSR1 || signal == SIGUSR2; }

void Stop(int signal) {
  if (!g_running) {
    if (!IsWarning(signal)) return End(signal);
    RemoveOwnFile();
    _exit(g_stop_exit_code);
  }
  const int64_t now = MonotonicNs();
  const int before = g_stop_signal.exchange(signal);
  const int64_t then = g_stop_time.exchange(now);
  if (before == 0 || IsWarning(signal)) return;
  if (before != signal || now - then > kOneSignal) End(signal);
}

void Handle(int signal) {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] != signal) continue;
    const auto effect = static_cast<Request>(g_effects[i].load());
    if (effect == Request::kSnapshot) g_snapshot = true;
    if (effect == Request::kStop) Stop(signal);
  }
}

}  // namespace

Request ParseSignalEffect(const std::string& flag, const std::string& word) {
  if (word == "stop") return Request::kStop;
  if (word == "snapshot") return Request::kSnapshot;
  if (word == "none") return Request::kNone;
  throw Error(ErrorCode::kUsage,
              Join("--", flag, "=", word, ": the effect is one of stop, snapshot, none"));
}

SignalWatch::SignalWatch(const SignalEffects& effects) {
  const Request by_signal[] = {effects.sigint, effects.sighup, effects.sigterm, effects.sigusr1,
                               effects.sigusr2};
  g_snapshot = false;
  g_stop_signal = 0;
  g_stop_time = 0;
  g_running = false;
  g_stop_exit_code = effects.stop_exit_code;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    g_effects[i] = static_cast<int>(by_signal[i]);
    struct sigaction action = {};
    action.sa_handler = Handle;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], &action, &g_before[i]);
  }
}

SignalWatch::~SignalWatch() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &g_before[i], nullptr);
}

void SignalWatch::BeginRun() { g_running = true; }

Request SignalWatch::Poll() {
  if (StopRequested()) return Request::kStop;
  return g_snapshot.exchange(false) ? Request::kSnapshot : Request::kNone;
}

bool SignalWatch::StopRequested() const { return g_stop_signal.load() != 0; }

std::string SignalWatch::StopSignal() const {
  switch (g_stop_signal.load()) {
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGUSR2:
      return "SIGUSR2";
    default:
      return "";
  }
}

}  // namespace trainer
