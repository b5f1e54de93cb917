#include "batch_workers.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "input_clock.h"
#include "trainer/base/error/error.h"
#include "trainer/base/thread/spin.h"
#include "trainer/input/bad_records.h"

namespace trainer {

namespace {

// A thread that waits for its turn to take records sleeps and is woken, which costs about as much
// as this: where the records it took are decoded sooner, it takes more of them at once.
constexpr double kLeastPart = 50e-6;  // seconds
// The same is true of whoever takes batches: those of small records come sooner.
constexpr int64_t kLongestWatch = 50'000;  // nanoseconds

}  // namespace

BatchWorkers::BatchWorkers(BatchSampler* feed, std::vector<std::unique_ptr<Decoder>> decoders,
                           int first, Form form, int64_t depth, ChunkSize at_once, int most_bad)
    : feed_(*feed),
      decoders_(std::move(decoders)),
      form_(std::move(form)),
      depth_(depth),
      at_once_(at_once),
      tunes_(static_cast<size_t>(first) < decoders_.size()),
      most_bad_(most_bad),
      tuner_(first, static_cast<int>(decoders_.size())),
      free_(static_cast<size_t>(depth) + 1, ChannelOrder::kLastIn),
      full_(static_cast<size_t>(depth) + 1),
      wanted_(static_cast<size_t>(first)),
      works_(static_cast<size_t>(depth) + 1) {
  if (most_bad >= 0) feed_.TrackPositions();
  counters_.threads = first;
}

const Batch& BatchWorkers::Next() {
  if (stopped_) throw Error(ErrorCode::kInternal, "a data source that was stopped is read");
  StartOnce();
  if (has_current_) free_.Push(std::move(current_));
  has_current_ = false;
  Wait(1);
  current_ = full_.Pop();
  has_current_ = true;
  NoteStages(current_);
  return current_;
}

void BatchWorkers::Await(int64_t count) {
  StartOnce();
  Wait(static_cast<size_t>(std::min(count, depth_)));
}

void BatchWorkers::Stop() {
  stopped_ = true;
  stop_.request_stop();  // of all, before one is waited for
  for (std::jthread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void BatchWorkers::StartOnce() {
  if (started()) return;
  for (int64_t i = 0; i <= depth_; ++i) {
    free_.Push(MakeBatch(form_.shapes, form_.memory, form_.elements));
  }
  threads_.reserve(decoders_.size());
  if (wanted_ > 1) {
    feed_.OwnRecords();
    return StartThreads(wanted_);
  }
  alone_ = true;
  threads_.emplace_back([this, stop = stop_.get_token()] { RunSingle(stop); });
}

void BatchWorkers::StartThreads(size_t count) {
  while (threads_.size() < count) {
    threads_.emplace_back(
        [this, stop = stop_.get_token(), i = threads_.size()] { RunShared(i, stop); });
  }
}

void BatchWorkers::Wait(size_t count) {
  if (full_.Count() >= count) return;
  if (took_ && full_.WouldWait() && LogsWait(++counters_.waits)) LOG(INFO) << "Waiting for data";
  const double begin = InputNow();
  Watch(count);
  full_.Await(count);
  const double waited = InputNow() - begin;
  (took_ ? counters_.wait_seconds : counters_.first_wait_seconds) += waited;
  waited_ += waited;
}

// Looks whether so many batches are ready, for as long as the cores are there for it.
void BatchWorkers::Watch(size_t count) const {
  NoteWait();
  const int64_t end = MonotonicNs() + std::min(kLongestWatch, SpinTime());
  while (full_.Count() < count && MonotonicNs() < end) __builtin_ia32_pause();
}

// Of a batch that was taken.
void BatchWorkers::NoteStages(const Batch& batch) {
  counters_.stages.read += batch.stages.read;
  counters_.stages.decode += batch.stages.decode;
  counters_.stages.augment += batch.stages.augment;
  const bool first = !std::exchange(took_, true);
  const double waited = std::exchange(waited_, 0);
  if (tunes_) Tune(first, waited);
}

void BatchWorkers::Tune(bool first, double waited) {
  const double now = InputNow();
  const double period = now - std::exchange(last_taken_, now);
  if (first) return;
  const WorkSeconds& all = counters_.stages;
  const bool decoding_is_slower = (all.decode + all.augment) / counters_.threads > all.read;
  tuner_.Note(period, waited, decoding_is_slower, full_.Count());
  if (tuner_.threads() == counters_.threads) return;
  counters_.threads = tuner_.threads();
  wanted_ = static_cast<size_t>(tuner_.threads());
  VLOG(1) << "Batches are decoded by " << counters_.threads << " threads from now on";
  StartThreads(wanted_);
}

// A new batch in a buffer that was used before.
void BatchWorkers::Clear(Batch* batch) {
  batch->bad = 0;
  batch->stages = {};
}

// All, and those of the epoch in which the batch ends.
void BatchWorkers::NoteBad(const std::vector<uint64_t>& epochs, Batch* batch) {
  batch->bad = static_cast<int64_t>(epochs.size());
  batch->next.bad = static_cast<uint64_t>(std::ranges::count(epochs, batch->next.epoch));
}

// Some batches are enough, and looking at the clock takes as long as a small record.
bool BatchWorkers::IsMeasured(uint64_t batch) { return batch % 4 == 0; }

void BatchWorkers::RunSingle(const std::stop_token& stop) try {
  {
    const std::lock_guard lock(taking_);
    std::vector<Record> records(at_once_.alone);
    for (uint64_t number = 0; wanted_ == 1 && !stop.stop_requested(); ++number) {
      Batch batch = free_.Pop(stop);
      Clear(&batch);
      std::vector<uint64_t> bad;
      const bool measured = IsMeasured(number);
      while (feed_.fetched() < feed_.batch_size()) {
        std::exception_ptr failure;
        const size_t fetched = Fetch(records, measured, &batch.stages, &failure);
        for (const uint64_t epoch : Decode({records.data(), fetched}, decoders_[0].get(), measured,
                                           &batch.stages, &batch)) {
          bad.push_back(epoch);
        }
        if (failure) std::rethrow_exception(failure);
      }
      if (feed_.source().Completes()) feed_.source().Complete(&batch);
      batch.next = feed_.EndBatch();
      NoteBad(bad, &batch);
      full_.Push(std::move(batch), stop);
    }
    alone_ = false;
    feed_.OwnRecords();
  }
  RunShared(0, stop);
} catch (const Closed&) {
} catch (...) {
  full_.Fail(std::current_exception());
}

void BatchWorkers::RunShared(size_t index, const std::stop_token& stop) try {
  std::vector<Record> records(std::max(at_once_.alone, at_once_.beside_others));
  size_t at_once = at_once_.beside_others;
  while (!stop.stop_requested() && index < wanted_) {
    RecordRange part = Take({records.data(), at_once}, stop);
    const double begin = InputNow();
    std::exception_ptr error;
    try {
      part.bad = Decode({records.data(), part.records}, decoders_[index].get(), part.measured,
                        &part.stages, &part.work->batch);
    } catch (...) {
      error = std::current_exception();
    }
    if (InputNow() - begin < kLeastPart) at_once = std::min(2 * at_once, records.size());
    FinishRange(part, error);
  }
} catch (const Closed&) {
} catch (...) {
  full_.Fail(std::current_exception());
}

BatchWorkers::RecordRange BatchWorkers::Take(std::span<Record> records,
                                             const std::stop_token& stop) {
  const std::lock_guard lock(taking_);
  if (fetch_failed_ || alone_) throw Closed{};  // alone: the only thread met an error
  if (feed_.fetched() == 0) fetched_ = StartBatch(free_.Pop(stop));
  RecordRange part;
  part.work = fetched_;
  part.first = feed_.fetched();
  part.measured = IsMeasured(begun_);
  const std::lock_guard feeding(feeding_);
  try {
    part.records = Fetch(records, part.measured, &part.stages, &part.failure);
    const bool ended = !part.failure && feed_.fetched() == feed_.batch_size();
    if (ended) fetched_->batch.next = feed_.EndBatch();
  } catch (...) {
    part.failure = std::current_exception();
  }
  fetch_failed_ = part.failure != nullptr;
  return part;
}

BatchWorkers::PendingBatch* BatchWorkers::StartBatch(Batch batch) {
  const std::lock_guard lock(finishing_);
  PendingBatch& work = works_[begun_++ % works_.size()];
  work.batch = std::move(batch);
  Clear(&work.batch);
  work.unfinished = feed_.batch_size();
  work.is_complete = false;
  work.bad.clear();
  work.error = nullptr;
  return &work;
}

void BatchWorkers::FinishRange(const RecordRange& part, const std::exception_ptr& error) {
  std::unique_lock lock(finishing_);
  PendingBatch& work = *part.work;
  const auto note = [&](const std::exception_ptr& what, int64_t at) {
    if (!what || (work.error && work.bad_record < at)) return;
    work.error = what;
    work.bad_record = at;
  };
  const int64_t end = part.first + static_cast<int64_t>(part.records);
  note(part.failure, end);
  note(error, part.first);
  work.bad.insert(work.bad.end(), part.bad.begin(), part.bad.end());
  work.batch.stages.read += part.stages.read;
  work.batch.stages.decode += part.stages.decode;
  work.batch.stages.augment += part.stages.augment;
  work.unfinished -= (part.failure ? feed_.batch_size() : end) - part.first;
  if (work.unfinished > 0) return;
  NoteBad(work.bad, &work.batch);
  if (feed_.source().Completes() && !work.error) {
    lock.unlock();  // nobody else has to do with a batch whose records are all there
    feed_.source().Complete(&work.batch);
    lock.lock();
  }
  work.is_complete = true;
  while (given_out_ < begun_ && works_[given_out_ % works_.size()].is_complete) {
    PendingBatch& next = works_[given_out_++ % works_.size()];
    next.is_complete = false;
    Publish(&next);
  }
}

void BatchWorkers::Publish(PendingBatch* work) {
  if (failed_) return;
  failed_ = work->error != nullptr;
  failed_ ? full_.Fail(work->error) : full_.Push(std::move(work->batch));
}

size_t BatchWorkers::Fetch(std::span<Record> records, bool measured, WorkSeconds* stages,
                           std::exception_ptr* failure) {
  const double begin = measured ? InputNow() : 0;
  const size_t fetched = feed_.Fetch(records, failure);
  if (measured) stages->read += InputNow() - begin;
  return fetched;
}

// Returns the epochs of the records that were bad.
std::vector<uint64_t> BatchWorkers::Decode(std::span<const Record> records, Decoder* decoder,
                                           bool measured, WorkSeconds* stages, Batch* batch) {
  if (!measured) return DecodeOrSkip(records, decoder, batch);
  const double begin = InputNow();
  std::vector<uint64_t> bad = DecodeOrSkip(records, decoder, batch);
  const double seconds = InputNow() - begin, augment = seconds * decoder->transform_fraction();
  stages->augment += augment;
  stages->decode += seconds - augment;
  return bad;
}

std::vector<uint64_t> BatchWorkers::DecodeOrSkip(std::span<const Record> records, Decoder* decoder,
                                                 Batch* batch) {
  try {
    decoder->Decode(records, batch);
    return {};
  } catch (const Error& error) {
    if (most_bad_ < 0 || !IsOfOneRecord(error)) throw;
  }
  std::vector<uint64_t> bad;
  for (const Record& record : records) {
    try {
      decoder->Decode({&record, 1}, batch);
    } catch (const Error& error) {
      if (!IsOfOneRecord(error)) throw;
      bad.push_back(record.place.epoch);
      DecodeReplacement(record, error, decoder, batch);
    }
  }
  return bad;
}

// Which record comes in the place of a bad one depends on neither threads nor ranks: the next good
// one in the order of the epoch.
void BatchWorkers::DecodeReplacement(const Record& bad, const Error& why, Decoder* decoder,
                                     Batch* batch) {
  LOG(WARNING) << "skipped record number " << bad.number
               << " and used the next good one instead: " << why.what();
  Record other;
  other.slot = bad.slot;
  for (uint64_t steps = 1;; ++steps) {
    {
      const std::lock_guard lock(feeding_);
      feed_.TakeAfter(bad.place, steps, &other);
    }
    try {
      return decoder->Decode({&other, 1}, batch);
    } catch (const Error& error) {
      const bool too_many = steps > static_cast<uint64_t>(most_bad_) + 1;
      if (too_many || !IsOfOneRecord(error)) throw;
    }
  }
}

}  // namespace trainer
