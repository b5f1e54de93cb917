#include "node/watchdog.h"

#include <glog/logging.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "node/futex.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/own_file.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInterval{100};
// A process that did not look for this long was suspended; it did not just wait for a core.
constexpr milliseconds kStopped{1000};

int64_t Ns(milliseconds time) { return std::chrono::nanoseconds(time).count(); }

// Converts nanoseconds to seconds, cut to one decimal.
double WatchSeconds(int64_t ns) { return static_cast<double>(ns / 100'000'000) / 10; }

// Returns whether a process does not exist any more. A zombie still exists.
bool IsGone(pid_t process) { return process > 0 && kill(process, 0) != 0 && errno == ESRCH; }

}  // namespace

Watchdog::Watchdog(const ControlBlock& block, int local, const std::vector<std::string>& names,
                   const WatchdogTimes& times)
    : block_(block),
      local_(local),
      own_(block.status(local)),
      names_(names),
      times_(times),
      seen_(static_cast<size_t>(block.local_size())),
      thread_([this] { Loop(); }) {}

Watchdog::~Watchdog() {
  ending_ = true;
  FutexWakeAll(block_.failure_word());
  thread_.join();
}

// Runs the thread: looks every 0.1 s until a rank fails. Then it waits for the grace period,
// removes the files that this process would leave over (RemoveOwnFiles) and ends the process.
void Watchdog::Loop() {
  int64_t failed = 0;  // MonotonicNs when the failure was seen
  while (!ending_) {
    const Failure failure = block_.failure();
    const int64_t now = MonotonicNs();
    DetectSuspension(now);
    if (failure.code == 0) {
      CheckPeers(now);
      CheckRemoteWait(now);
      if (!ending_) FutexWait(block_.failure_word(), 0, kInterval);
      continue;
    }
    if (failed == 0) failed = now;
    if (now - failed > Ns(times_.grace)) {
      RemoveOwnFiles();
      _exit(failure.code);
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
}

// Notes that the watchdog looks now, and whether this process was suspended before. A batch system
// that suspends a job stops all its processes. No rank counts as silent for that time, so silence
// is measured anew from the moment when this process continues.
void Watchdog::DetectSuspension(int64_t now) {
  if (now - looked_ > Ns(kStopped)) awake_since_ = now;
  looked_ = now;
}

// Returns whether this rank waits for `local`: its phase is lower than this rank's, and no rank of
// the node has a lower one, so it waits for none of them itself.
bool Watchdog::IsWaitingFor(int local) const {
  const uint32_t phase = block_.status(local).phase.load();
  if (static_cast<int32_t>(phase - own_.phase.load()) >= 0) return false;
  for (int other = 0; other < block_.local_size(); ++other) {
    if (static_cast<int32_t>(block_.status(other).phase.load() - phase) < 0) return false;
  }
  return true;
}

// Returns whether no rank of the node has reported the silence of `local` in its present phase yet,
// and marks it as reported.
bool Watchdog::IsFirstReport(int local) const {
  RankStatus& other = block_.status(local);
  const uint32_t now = other.phase.load() + 1;
  return other.reported.exchange(now) != now;
}

// Notes the progress of all ranks of the node, and checks those for which this rank waits.
void Watchdog::CheckPeers(int64_t now) {
  const int64_t since = own_.waiting_since.load();
  for (int local = 0; local < block_.local_size(); ++local) {
    Seen& seen = seen_[static_cast<size_t>(local)];
    const uint32_t progress = block_.status(local).progress.load();
    if (seen.changed == 0 || progress != seen.progress) seen = {progress, now};
    if (since == 0 || now - since < Ns(kInterval) || !IsWaitingFor(local)) continue;
    CheckPeer(local, now - std::max({since, seen.changed, awake_since_}));
  }
}

// Checks a rank of the node for which this one waits and which has been silent for `silent` ns:
// gives up if its process has ended or after the time-out, and warns once before. A rank that waits
// for another node itself is not blamed.
void Watchdog::CheckPeer(int local, int64_t silent) {
  const RankStatus& other = block_.status(local);
  const int rank = other.rank.load();
  const std::string& name = names_[static_cast<size_t>(rank)];
  const std::string last = Join("; its last iteration was ", other.iterations.load());
  if (IsGone(other.process.load())) {
    return EndRunWithout(rank, Join(name, " has ended without an error message", last,
                                    ". Resume from the newest snapshot (--resume=auto)"));
  }
  if (other.remote_wait_since.load() != 0) return;  // a rank of another node delays it
  if (silent > Ns(times_.give_up)) {
    return EndRunWithout(rank, Join(name, " has been silent for ", WatchSeconds(silent), " s", last,
                                    ". The run stops (--peer_timeout)"));
  }
  if (silent < Ns(times_.warn_after) || !IsFirstReport(local)) return;
  LOG(WARNING) << "Waiting for " << name << ", silent for " << WatchSeconds(silent) << " s" << last;
}

// Checks the rank of another node for which this one waits. MPI only tells that its message is
// missing.
void Watchdog::CheckRemoteWait(int64_t now) {
  const int64_t since = own_.remote_wait_since.load();
  if (since == 0) return;
  const int rank = own_.remote_wait_rank.load();
  const std::string& name = names_[static_cast<size_t>(rank)];
  const int64_t silent = now - std::max(since, awake_since_);
  if (silent > Ns(times_.give_up)) {
    return EndRunWithout(rank, Join(name, " has been silent for ", WatchSeconds(silent),
                                    " s; the last iteration here was ", own_.iterations.load(),
                                    ". The run stops (--peer_timeout)"));
  }
  if (silent < Ns(times_.warn_after) || !IsFirstReport(local_)) return;
  LOG(WARNING) << "Waiting for " << name << ", silent for " << WatchSeconds(silent) << " s";
}

// Ends the run because `rank` is lost. Prints the message unless a failure was recorded before.
void Watchdog::EndRunWithout(int rank, const std::string& message) const {
  if (!block_.ReportFailure({static_cast<int>(ErrorCode::kPeerLost), rank})) return;
  std::fprintf(stderr, "error: %s\n", message.c_str());
}

}  // namespace trainer
