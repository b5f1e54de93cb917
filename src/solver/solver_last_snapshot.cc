// Writes the last snapshot of a run. Unlike the others it has no successor, so the run retries it
// and finally writes it to another folder.

#include "run_control.h"
#include "solver_context.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_writer.h"
#include "trainer/solver/solver.h"

namespace trainer {

// Returns when every snapshot that was begun is on the disk.
void Solver::SaveLast(bool stopped) {
  if (!run_->TestsAndSaves()) return;
  const bool begun = run_->BroadcastBool(started_iter_ == run_->iter);
  if (!begun && (stopped || run_->proto.snapshot_after_train())) StartSnapshot();
  LimitLast();
  // A rank that fails also ends rank 0, so all ranks stay until rank 0 has written.
  while (run_->BroadcastBool(writer_ && !writer_->WaitFor(std::chrono::seconds(1)))) {
    if (writer_ && writer_->refused()) LimitLast();
  }
  AwaitSnapshot();
  run_->BroadcastBool(true);
}

// Sets until when the last snapshot is retried. Called repeatedly, because a SIGTERM that comes
// meanwhile may shorten that time.
void Solver::LimitLast() {
  if (!writer_) return;
  const auto now = std::chrono::steady_clock::now();
  if (last_begun_ == std::chrono::steady_clock::time_point()) last_begun_ = now;
  LastTries last;
  last.rescue_folders = rescue_.folders;
  last.resume_command = rescue_.resume_command;
  last.was_writable = folder_was_writable_;
  const std::optional<std::chrono::steady_clock::time_point> end = control_->reserve().LastTry();
  last.until = end ? *end : last_begun_ + rescue_.patience;
  last.reason = end ? "the run must end after that" : "the end of this job is unknown";
  const auto term = control_->TermTime();
  if (term && writer_->refused()) {
    if (!kill_wait_) kill_wait_ = rescue_.kill_wait ? rescue_.kill_wait() : KillWait();
    const auto stop = *term + kill_wait_->time - control_->reserve().SnapshotReserve();
    if (kill_wait_->time.count() > 0 && (!end || stop < last.until)) {
      last.until = stop;
      last.reason = kill_wait_->reason;
    }
  }
  writer_->SetLast(std::move(last));
}

}  // namespace trainer
