#include "trainer/solver/signals.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>

#include "trainer/base/file/own_file.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

constexpr std::array kSignals = {SIGINT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};
constexpr int64_t kOneSignal = 500'000'000;  // nanoseconds within which a repeat does not count

// A signal handler writes these variables, so they must be lock-free atomics.
std::atomic<int> g_effects[kSignals.size()];
std::atomic<bool> g_snapshot{false};
std::atomic<int64_t> g_answered{0};                  // snapshot signals are ignored until this time
std::atomic<int> g_stop_signal{0};                   // the first signal that asked to stop, or 0
std::atomic<int64_t> g_stop_times[kSignals.size()];  // when each signal first asked to stop, or 0
std::atomic<bool> g_running{false};                  // whether BeginRun was called
std::atomic<int> g_stop_exit_code{static_cast<int>(ErrorCode::kStopped)};
struct sigaction g_before[kSignals.size()];
stack_t g_stack_before;

// Ends the process as if the signal were not handled.
void End(int signal) {
  RemoveOwnFiles();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

// Batch systems send these signals as a warning before the end of a job.
bool IsWarning(int signal) { return signal == SIGUSR1 || signal == SIGUSR2; }

// Only a repeat of the same signal ends the run at once. A signal of another kind must not: the run
// may be writing its last snapshot when Slurm, which sent SIGUSR1 as a warning, sends SIGTERM at
// the time limit, or when mpirun answers Ctrl-C with SIGTERM.
void Stop(size_t kind) {
  const int signal = kSignals[kind];
  if (!g_running) {
    if (!IsWarning(signal)) return End(signal);
    RemoveOwnFiles();
    _exit(g_stop_exit_code);
  }
  int none = 0;
  g_stop_signal.compare_exchange_strong(none, signal);
  int64_t first = 0;
  const int64_t now = MonotonicNs();
  if (g_stop_times[kind].compare_exchange_strong(first, now) || IsWarning(signal)) return;
  if (now - first > kOneSignal) End(signal);
}

void Handle(int signal) {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] != signal) continue;
    const auto effect = static_cast<Request>(g_effects[i].load());
    if (effect == Request::kSnapshot && MonotonicNs() > g_answered) g_snapshot = true;
    if (effect == Request::kStop) Stop(i);
  }
}

// Returns the size of the stack that handlers run on: the space for the saved processor registers
// (11 KiB with AMX) and room for the handler itself.
size_t HandlerStackBytes() {
  return static_cast<size_t>(std::max<long>(sysconf(_SC_MINSIGSTKSZ), 0)) + (size_t{64} << 10);
}

}  // namespace

Request ParseSignalEffect(const std::string& flag, const std::string& word) {
  if (word == "stop") return Request::kStop;
  if (word == "snapshot") return Request::kSnapshot;
  if (word == "none") return Request::kNone;
  throw Error(ErrorCode::kUsage, Join("--", flag, "=", word,
                                      ": not an effect of a signal; give stop, snapshot or none"));
}

// Handlers run on their own stack, because oneDNN's sgemm keeps data below the stack pointer: on
// its stack one handler in 16 corrupted the heap.
SignalWatch::SignalWatch(const SignalWatch::Effects& effects) : stack_(HandlerStackBytes()) {
  stack_t stack = {};
  stack.ss_sp = stack_.data();
  stack.ss_size = stack_.size();
  sigaltstack(&stack, &g_stack_before);
  const Request by_signal[] = {effects.sigint, effects.sighup, effects.sigterm, effects.sigusr1,
                               effects.sigusr2};
  g_snapshot = false;
  g_answered = 0;
  g_stop_signal = 0;
  g_running = false;
  g_stop_exit_code = effects.stop_exit_code;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    g_effects[i] = static_cast<int>(by_signal[i]);
    g_stop_times[i] = 0;
    struct sigaction action = {};
    action.sa_handler = Handle;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], &action, &g_before[i]);
  }
}

SignalWatch::~SignalWatch() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &g_before[i], nullptr);
  sigaltstack(&g_stack_before, nullptr);
}

void SignalWatch::BeginRun() { g_running = true; }

Request SignalWatch::Poll() {
  if (StopRequested()) return Request::kStop;
  return g_snapshot.exchange(false) ? Request::kSnapshot : Request::kNone;
}

void SignalWatch::NoteSnapshot() {
  g_answered = MonotonicNs() + kOneSignal;
  g_snapshot = false;
}

bool SignalWatch::StopRequested() const { return g_stop_signal.load() != 0; }

std::optional<std::chrono::steady_clock::time_point> SignalWatch::TermTime() const {
  static constexpr size_t kTerm = 2;
  static_assert(kSignals[kTerm] == SIGTERM);
  const int64_t time = g_stop_times[kTerm];
  if (time == 0) return std::nullopt;
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time));
}

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
