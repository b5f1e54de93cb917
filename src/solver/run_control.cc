#include "run_control.h"

#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/duration.h"
#include "trainer/base/text/text.h"
#include "trainer/net/data_layers.h"

namespace trainer {

RunControl::RunControl(const SolverContext& run, const SolverOptions& options)
    : run_(run), signals_(options.signals), end_(run.rank.rank == 0 ? options.end : std::nullopt) {
  if (run.proto.has_snapshot_every() && run.rank.rank == 0) {
    snapshot_every_ = ParseDuration(run.proto.snapshot_every());
  }
}

void RunControl::PlanSnapshots(uint64_t bytes, const SnapshotWriter* writer) {
  reserve_ = DeadlineReserve(end_, bytes);
  writer_ = writer;
}

void RunControl::Begin() {
  NoteSnapshot();
  unmet_seconds_ = 0;
  if (signals_ != nullptr) signals_->BeginRun();
}

Request RunControl::Local(bool in_test) {
  if (HasLostInput()) return Request::kStop;
  const auto now = std::chrono::steady_clock::now();
  const int snapshots = writer_ == nullptr ? 1 : writer_->AttemptsLeft();
  const auto done = writer_ == nullptr ? now : now + writer_->PausesAhead();
  if (run_.iter < run_.proto.max_iter() && reserve_.IsUp(done, snapshots, in_test)) {
    if (!time_was_up_)
      run_.observer.OnNote("The time limit of this run is near: " + reserve_.Describe(now));
    time_was_up_ = true;
    return Request::kStop;
  }
  const Request request = signals_ == nullptr ? Request::kNone : signals_->Poll();
  return request == Request::kNone && IsSnapshotDue() ? Request::kSnapshot : request;
}

bool RunControl::IsSnapshotDue() const {
  return snapshot_every_ && std::chrono::steady_clock::now() - last_snapshot_ >= *snapshot_every_;
}

Request RunControl::Agree(Request own) {
  const Strategy::Requests requests =
      run_.strategy.Agree({own == Request::kStop, own == Request::kSnapshot});
  if (requests.stop) return Request::kStop;
  if (!requests.snapshot) return Request::kNone;
  if (signals_ != nullptr && run_.rank.size > 1) signals_->NoteSnapshot();
  return Request::kSnapshot;
}

Request RunControl::AfterStep(double seconds) {
  unmet_seconds_ += seconds;
  if (!run_.strategy.IsSyncPoint(run_.iter)) return Request::kNone;
  reserve_.NoteIteration(std::exchange(unmet_seconds_, 0));
  return Agree(Local(false));
}

bool RunControl::StopWasAsked() const {
  return time_was_up_ || (signals_ != nullptr && signals_->StopRequested());
}

bool RunControl::WaitForInput(const Net& net, int passes) {
  try {
    WaitForBatches(net, passes);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) return true;  // the next pass throws it
    input_error_ = error.what();
    if (!StopWasAsked()) {
      run_.observer.OnNote(Join("The data can no longer be read: ", input_error_));
    }
    return false;
  }
}

void RunControl::ThrowInputError(int saved_iter) const {
  if (!HasLostInput() || StopWasAsked()) return;
  throw Error(
      ErrorCode::kIo,
      Join(input_error_, saved_iter < 0 ? std::string()
                                        : Join(". A snapshot was saved at iteration ", saved_iter,
                                               "; resume from it with --resume=auto")));
}

std::optional<std::chrono::steady_clock::time_point> RunControl::TermTime() const {
  return signals_ == nullptr ? std::nullopt : signals_->TermTime();
}

}  // namespace trainer
