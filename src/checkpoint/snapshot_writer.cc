#include "trainer/checkpoint/snapshot_writer.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/paced_ops.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int kHurriedTries = 3;
constexpr int kMostDoubled = 3;  // how often the pause between tries of the last snapshot doubles

// The share of the time for which the writing thread may compute while no thread waits for the
// snapshot. The file of a large net then takes a minute instead of two seconds; during that minute
// training is delayed by about this share (see PacedOps).
constexpr double kBackgroundShare = 0.03;

// Returns the message of a failure that the disk, its permissions or its folder caused, so that it
// may be temporary; else "".
std::string DiskTrouble(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    const bool of_disk = error.code() == ErrorCode::kIo ||
                         error.code() == ErrorCode::kCannotCreate ||
                         error.code() == ErrorCode::kNoPermission;
    return of_disk ? error.what() : "";
  } catch (...) {
    return "";
  }
}

double SecondsOf(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1e3; }

// Returns the time left until `time`, negative after it.
std::chrono::milliseconds Until(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time -
                                                               std::chrono::steady_clock::now());
}

// Returns the code of a failure, which must be an Error.
ErrorCode CodeOf(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.code();
  }
}

}  // namespace

SnapshotWriter::SnapshotWriter(std::string prefix, SnapshotFormat format, RetryPolicy pauses,
                               std::function<void(const SnapshotNames&)> on_written)
    : prefix_(std::move(prefix)),
      format_(format),
      pauses_(pauses),
      on_written_(std::move(on_written)) {}

SnapshotWriter::~SnapshotWriter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    Expedite();
  }
  if (thread_.joinable()) thread_.join();
}

void SnapshotWriter::Expedite() {
  expedited_ = true;
  changed_.notify_all();
}

void SnapshotWriter::SetState(State state) {
  state_ = state;
  busy_ = state == State::kReady || state == State::kWriting || state == State::kPausing;
  failed_ = state == State::kFailed;
  changed_.notify_all();
}

SnapshotContent& SnapshotWriter::Next() {
  ThrowFailure();
  std::unique_lock lock(mutex_);
  Expedite();
  changed_.wait(lock, [this] { return state_ != State::kReady && state_ != State::kWriting; });
  if (state_ == State::kPausing) SetState(State::kIdle);
  lock.unlock();
  ThrowFailure();
  return content_;
}

void SnapshotWriter::Start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
  const std::lock_guard lock(mutex_);
  tries_ = 0;
  expedited_ = false;
  SetState(State::kReady);
}

void SnapshotWriter::Wait() {
  while (!WaitFor(std::chrono::hours(1))) {
  }
  ThrowFailure();
}

void SnapshotWriter::SetLast(LastTries last) {
  const std::lock_guard lock(mutex_);
  last_ = std::move(last);
  if (state_ == State::kPausing) changed_.notify_all();
}

bool SnapshotWriter::WaitFor(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  if (!waited_for_) expedited_attempts_ = 0;
  waited_for_ = true;
  Expedite();
  const bool done = changed_.wait_for(
      lock, time, [this] { return state_ == State::kIdle || state_ == State::kFailed; });
  if (done) waited_for_ = false;
  return done;
}

void SnapshotWriter::WaitIdle() {
  while (!WaitIdleFor(std::chrono::hours(1))) {
  }
}

bool SnapshotWriter::WaitIdleFor(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  Expedite();
  return changed_.wait_for(lock, time,
                           [this] { return state_ != State::kReady && state_ != State::kWriting; });
}

int SnapshotWriter::AttemptsLeft() const {
  if (refused_) return kHurriedTries;
  return busy_ ? 2 : 1;
}

std::chrono::milliseconds SnapshotWriter::PausesAhead() const {
  return refused_ ? (kHurriedTries - 1) * pauses_.waited_for : std::chrono::milliseconds(0);
}

void SnapshotWriter::ThrowFailure() {
  if (!failed_) return;
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    failure = std::exchange(failure_, nullptr);
    SetState(State::kIdle);
  }
  std::rethrow_exception(failure);
}

void SnapshotWriter::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || state_ == State::kReady; });
    if (state_ != State::kReady) return;
    SetState(State::kWriting);
    lock.unlock();
    const std::exception_ptr failure = Write();
    lock.lock();
    refused_ = failure != nullptr;
    if (!failure) {
      SetState(State::kIdle);
    } else if (PausesFor(lock, failure)) {
      SetState(State::kReady);
    } else if (state_ == State::kWriting) {  // no further try
      failure_ = failure;
      if (last_ && waited_for_ && !DiskTrouble(failure).empty()) {
        const LastTries last = *last_;
        lock.unlock();
        const std::exception_ptr told = Rescue(last, failure);
        lock.lock();
        failure_ = told;
      }
      SetState(State::kFailed);
    }
  }
}

std::chrono::milliseconds SnapshotWriter::PauseWhileTraining(const std::string& trouble) const {
  const auto pause = std::min(pauses_.longest, pauses_.first * (1 << std::min(tries_, 12)));
  LOG(WARNING) << EscapeControl(
      Join("The snapshot of iteration ", content_.iter,
           " could not be written; training continues, and the run tries again in ",
           SecondsOf(pause), " s. ", trouble));
  return pause;
}

std::optional<std::chrono::milliseconds> SnapshotWriter::PauseWhileWaitedFor(
    const std::string& trouble) {
  if (!last_) {
    if (expedited_attempts_ >= kHurriedTries) return std::nullopt;
    return pauses_.waited_for;
  }
  const std::chrono::milliseconds left = Until(last_->until);
  if (left.count() <= 0) return std::nullopt;
  if (reason_told_ != last_->reason) {
    reason_told_ = last_->reason;
    LOG(WARNING) << EscapeControl(
        Join("The last snapshot, of iteration ", content_.iter, ", could not be written. ", trouble,
             ". The run tries again for ", SecondsOf(left), " s (", last_->reason, "), then ",
             last_->rescue_folders.empty()
                 ? std::string("the run exits without it; set another folder with --rescue_dir")
                 : Join("it writes the snapshot to ", JoinList(last_->rescue_folders, " or ")),
             "."));
  }
  return std::min(left,
                  pauses_.waited_for * (1 << std::min(expedited_attempts_ - 1, kMostDoubled)));
}

std::exception_ptr SnapshotWriter::Rescue(const LastTries& last,
                                          const std::exception_ptr& failure) {
  std::string where;
  for (const std::string& folder : last.rescue_folders) {
    const std::string rescue_prefix = MakeRescuePrefix(folder, prefix_);
    if (rescue_prefix.empty()) continue;
    try {
      const SnapshotNames names = SaveSnapshot(
          rescue_prefix, content_.iter, content_.model, content_.state, FileOps::Posix(),
          content_.has_averaged ? &content_.averaged : nullptr, format_);
      where =
          Join("It is stored as ", names.state, ". Copy that folder before the machine deletes ",
               "it, and resume with: ", last.resume_command(names.state));
      break;
    } catch (const Error& error) {
      LOG(WARNING) << EscapeControl(Join("The last snapshot could not be rescued. ", error.what()));
    }
  }
  if (where.empty()) {
    where = Join(last.rescue_folders.empty() ? "No other folder was tried"
                                             : "No rescue folder could be written either",
                 " (--rescue_dir, $SLURM_TMPDIR, $TMPDIR): the iterations since the previous "
                 "snapshot are lost");
  }
  const ErrorCode code = last.was_writable ? ErrorCode::kIo : CodeOf(failure);
  return std::make_exception_ptr(Error(
      code,
      EscapeControl(Join(
          "the last snapshot, of iteration ", content_.iter, ", could not be written",
          last.was_writable ? ", although its folder was writable at the start of the run" : "",
          ". ", DiskTrouble(failure), ". ", where))));
}

bool SnapshotWriter::PausesFor(std::unique_lock<std::mutex>& lock,
                               const std::exception_ptr& failure) {
  const std::string trouble = DiskTrouble(failure);
  if (waited_for_) ++expedited_attempts_;
  if (ending_ && !waited_for_) {  // another error ends the run
    LOG(WARNING) << EscapeControl(
        Join("The snapshot of iteration ", content_.iter, " could not be written. ", trouble));
  }
  if (trouble.empty() || ending_) return false;
  const std::optional<std::chrono::milliseconds> pause =
      waited_for_ ? PauseWhileWaitedFor(trouble) : PauseWhileTraining(trouble);
  if (!pause) return false;
  ++tries_;
  const bool hurried = waited_for_;
  const bool had_limit = last_.has_value();
  SetState(State::kPausing);
  changed_.wait_for(lock, *pause, [&] {
    return ending_ || state_ != State::kPausing || (waited_for_ && !hurried) ||
           (had_limit && Until(last_->until).count() <= 0);
  });
  // The snapshot is obsolete if its memory was taken for the next one, or if the writer is ending
  // and no thread waits.
  return state_ == State::kPausing && (!ending_ || waited_for_);
}

void SnapshotWriter::Rest(std::chrono::nanoseconds time) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return expedited_; });
  rested_ += std::chrono::steady_clock::now() - start;
}

std::exception_ptr SnapshotWriter::Write() {
  using Seconds = std::chrono::duration<double>;
  const auto start = std::chrono::steady_clock::now();
  rested_ = {};
  PacedOps ops(kBackgroundShare, [this](std::chrono::nanoseconds time) { Rest(time); });
  try {
    const SnapshotNames names =
        SaveSnapshot(prefix_, content_.iter, content_.model, content_.state, ops,
                     content_.has_averaged ? &content_.averaged : nullptr, format_);
    const auto passed = std::chrono::steady_clock::now() - start;
    seconds_ = Seconds(passed).count();
    busy_seconds_ = Seconds(passed - rested_).count();
    on_written_(names);
    ++count_;
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace trainer
