#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "batch_sampler.h"
#include "input_clock.h"
#include "trainer/base/error/error.h"
#include "trainer/input/bad_records.h"
#include "trainer/input/batch_queue.h"

namespace trainer {
namespace {

// Waking a worker that waits for its turn costs about this time. A worker that decodes its records
// sooner takes more of them the next time.
constexpr double kShortestRange = 50e-6;  // seconds

// Measuring some batches is enough, and reading the clock takes as long as a small record.
bool IsMeasured(uint64_t batch) { return batch % 4 == 0; }

// Counts all bad records, and those of the epoch in which the batch ends.
void CountBad(const std::vector<uint64_t>& epochs, Batch* batch) {
  batch->bad = static_cast<int64_t>(epochs.size());
  batch->next.bad = static_cast<uint64_t>(std::ranges::count(epochs, batch->next.epoch));
}

}  // namespace

void BatchQueue::RunSingle(const std::stop_token& stop) try {
  {
    const std::lock_guard lock(taking_);
    std::vector<Record> records(single_range_);
    for (uint64_t number = 0; wanted_ == 1 && !stop.stop_requested(); ++number) {
      Batch batch = free_.Pop(stop);
      batch.work = {};
      std::vector<uint64_t> bad;
      WorkSeconds* const work = IsMeasured(number) ? &batch.work : nullptr;
      while (sampler_->taken() < sampler_->batch_size()) {
        std::exception_ptr failure;
        const size_t count = Read(records, work, &failure);
        Decode({records.data(), count}, decoders_[0].get(), work, &batch, &bad);
        if (failure) std::rethrow_exception(failure);
      }
      if (source_.decoders->mixes()) source_.decoders->Mix(sampler_->rank_batch_size(), &batch);
      batch.next = sampler_->EndBatch();
      CountBad(bad, &batch);
      full_.Push(std::move(batch), stop);
    }
    single_ = false;
    sampler_->OwnRecords();
  }
  RunShared(0, stop);
} catch (const QueueStopped&) {
} catch (...) {
  full_.Fail(std::current_exception());
}

void BatchQueue::RunShared(size_t index, const std::stop_token& stop) try {
  std::vector<Record> records(std::max(single_range_, shared_range_));
  size_t range_size = shared_range_;
  while (!stop.stop_requested() && index < wanted_) {
    RecordRange range = TakeRange({records.data(), range_size}, stop);
    const double begin = InputNow();
    std::exception_ptr error;
    try {
      Decode({records.data(), range.records}, decoders_[index].get(), range.measured(),
             &range.pending->batch, &range.bad);
    } catch (...) {
      error = std::current_exception();
    }
    if (InputNow() - begin < kShortestRange) range_size = std::min(2 * range_size, records.size());
    FinishRange(range, error);
  }
} catch (const QueueStopped&) {
} catch (...) {
  full_.Fail(std::current_exception());
}

BatchQueue::RecordRange BatchQueue::TakeRange(std::span<Record> records,
                                              const std::stop_token& stop) {
  const std::lock_guard lock(taking_);
  if (read_failed_ || single_) throw QueueStopped{};  // single_: the only worker failed
  if (sampler_->taken() == 0) taken_ = StartBatch(free_.Pop(stop));
  RecordRange range;
  range.pending = taken_;
  range.first = sampler_->taken();
  if (IsMeasured(begun_)) range.work.emplace();
  const std::lock_guard sampling(sampling_);
  try {
    range.records = Read(records, range.measured(), &range.failure);
    const bool ended = !range.failure && sampler_->taken() == sampler_->batch_size();
    if (ended) taken_->batch.next = sampler_->EndBatch();
  } catch (...) {
    range.failure = std::current_exception();
  }
  read_failed_ = range.failure != nullptr;
  return range;
}

BatchQueue::PendingBatch* BatchQueue::StartBatch(Batch batch) {
  const std::lock_guard lock(finishing_);
  PendingBatch& pending = pending_[begun_++ % pending_.size()];
  pending.batch = std::move(batch);
  pending.batch.work = {};
  pending.unfinished = sampler_->batch_size();
  pending.is_complete = false;
  pending.bad.clear();
  pending.error = nullptr;
  return &pending;
}

void BatchQueue::FinishRange(const RecordRange& range, const std::exception_ptr& error) {
  std::unique_lock lock(finishing_);
  PendingBatch& pending = *range.pending;
  const auto note = [&](const std::exception_ptr& what, int64_t at) {
    if (!what || (pending.error && pending.failed_at < at)) return;
    pending.error = what;
    pending.failed_at = at;
  };
  const int64_t end = range.first + static_cast<int64_t>(range.records);
  note(range.failure, end);
  note(error, range.first);
  pending.bad.insert(pending.bad.end(), range.bad.begin(), range.bad.end());
  if (range.work) pending.batch.work.Add(*range.work);
  pending.unfinished -= (range.failure ? sampler_->batch_size() : end) - range.first;
  if (pending.unfinished > 0) return;
  CountBad(pending.bad, &pending.batch);
  if (source_.decoders->mixes() && !pending.error) {
    lock.unlock();  // no other worker uses a batch whose records are all decoded
    source_.decoders->Mix(sampler_->rank_batch_size(), &pending.batch);
    lock.lock();
  }
  pending.is_complete = true;
  while (published_ < begun_ && pending_[published_ % pending_.size()].is_complete) {
    PendingBatch& next = pending_[published_++ % pending_.size()];
    next.is_complete = false;
    if (failed_) continue;
    failed_ = next.error != nullptr;
    failed_ ? full_.Fail(next.error) : full_.Push(std::move(next.batch));
  }
}

// `work` is null if the time is not measured.
size_t BatchQueue::Read(std::span<Record> records, WorkSeconds* work, std::exception_ptr* failure) {
  const double begin = work != nullptr ? InputNow() : 0;
  const size_t count = sampler_->Take(records, failure);
  if (work != nullptr) work->read += InputNow() - begin;
  return count;
}

// Adds the epochs of the records that were bad to `bad`.
void BatchQueue::Decode(std::span<const Record> records, Decoder* decoder, WorkSeconds* work,
                        Batch* batch, std::vector<uint64_t>* bad) {
  const double begin = work != nullptr ? InputNow() : 0;
  DecodeOrSkip(records, decoder, batch, bad);
  if (work == nullptr) return;
  const double seconds = InputNow() - begin, transform = seconds * decoder->transform_fraction();
  work->transform += transform;
  work->decode += seconds - transform;
}

void BatchQueue::DecodeOrSkip(std::span<const Record> records, Decoder* decoder, Batch* batch,
                              std::vector<uint64_t>* bad) {
  try {
    return decoder->Decode(records, batch);
  } catch (const Error& error) {
    if (most_bad_ < 0 || !IsOfOneRecord(error)) throw;
  }
  for (const Record& record : records) {
    try {
      decoder->Decode({&record, 1}, batch);
    } catch (const Error& error) {
      if (!IsOfOneRecord(error)) throw;
      bad->push_back(record.position.epoch);
      DecodeReplacement(record, error, decoder, batch);
    }
  }
}

// Replaces a bad record by the next good one of the epoch, whatever the threads and ranks are, and
// logs a warning. Rethrows the error of the last record that was tried after too many bad ones.
void BatchQueue::DecodeReplacement(const Record& bad, const Error& why, Decoder* decoder,
                                   Batch* batch) {
  LOG(WARNING) << "skipped record number " << bad.number
               << " and used the next good one instead: " << why.what();
  Record other;
  other.batch_index = bad.batch_index;
  for (uint64_t steps = 1;; ++steps) {
    {
      const std::lock_guard lock(sampling_);
      sampler_->TakeAfter(bad.position, steps, &other);
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
