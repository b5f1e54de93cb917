#include "batch_threads.h"

#include <glog/logging.h>

#include <chrono>
#include <utility>

#include "trainer/base/error.h"

namespace trainer {

BatchThreads::BatchThreads(RecordFeed* feed, std::vector<std::unique_ptr<Decoder>> decoders,
                           Form form, int64_t depth, size_t records_at_once)
    : feed_(*feed),
      decoders_(std::move(decoders)),
      form_(std::move(form)),
      depth_(depth),
      records_at_once_(records_at_once),
      free_(static_cast<size_t>(depth) + 1),
      full_(static_cast<size_t>(depth) + 1),
      works_(static_cast<size_t>(depth) + 1) {}

const Batch& BatchThreads::Next() {
  if (stopped_) throw Error(ErrorCode::kInternal, "a data source that was stopped is read");
  const bool first = !started();
  if (first) Start();
  if (has_current_) free_.Push(std::move(current_));
  has_current_ = false;
  current_ = Wait(first);
  has_current_ = true;
  return current_;
}

void BatchThreads::Stop() {
  stopped_ = true;
  stop_.request_stop();  // of all, before one is waited for
  for (std::jthread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void BatchThreads::Start() {
  for (int64_t i = 0; i <= depth_; ++i) {
    free_.Push(MakeBatch(form_.shapes, form_.memory, form_.elements));
  }
  const std::stop_token stop = stop_.get_token();
  if (decoders_.size() == 1) {
    threads_.emplace_back([this, stop] { RunAlone(stop); });
    return;
  }
  for (const auto& decoder : decoders_) {
    threads_.emplace_back([this, stop, to = decoder.get()] { RunBesideOthers(to, stop); });
  }
}

Batch BatchThreads::Wait(bool first) {
  if (!full_.WouldWait()) return full_.Pop();
  if (!first && LogsWait(++counters_.waits)) LOG(INFO) << "Waiting for data";
  const auto begin = std::chrono::steady_clock::now();
  Batch batch = full_.Pop();
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  (first ? counters_.first_wait_seconds : counters_.wait_seconds) += waited.count();
  return batch;
}

void BatchThreads::RunAlone(const std::stop_token& stop) try {
  std::vector<RawRecord> records(records_at_once_);
  while (!stop.stop_requested()) {
    Batch batch = free_.Pop(stop);
    while (feed_.fetched() < feed_.batch_size()) {
      std::exception_ptr failure;
      const size_t fetched = feed_.Fetch(records, &failure);
      decoders_[0]->Decode({records.data(), fetched}, &batch);
      if (failure) std::rethrow_exception(failure);
    }
    batch.next = feed_.EndBatch();
    full_.Push(std::move(batch), stop);
  }
} catch (const Closed&) {
} catch (...) {
  full_.Fail(std::current_exception());
}

void BatchThreads::RunBesideOthers(Decoder* decoder, const std::stop_token& stop) try {
  std::vector<RawRecord> records(records_at_once_);
  while (!stop.stop_requested()) {
    const Part part = Take(records, stop);
    std::exception_ptr error;
    try {
      decoder->Decode({records.data(), part.records}, &part.work->batch);
    } catch (...) {
      error = std::current_exception();
    }
    Finish(part, error);
  }
} catch (const Closed&) {
} catch (...) {
  full_.Fail(std::current_exception());
}

BatchThreads::Part BatchThreads::Take(std::span<RawRecord> records, const std::stop_token& stop) {
  const std::lock_guard lock(fetching_);
  if (fetch_failed_) throw Closed{};
  if (feed_.fetched() == 0) fetched_ = Begin(free_.Pop(stop));
  Part part;
  part.work = fetched_;
  part.first = feed_.fetched();
  try {
    part.records = feed_.Fetch(records, &part.failure);
    const bool ended = !part.failure && feed_.fetched() == feed_.batch_size();
    if (ended) fetched_->batch.next = feed_.EndBatch();
  } catch (...) {
    part.failure = std::current_exception();
  }
  fetch_failed_ = part.failure != nullptr;
  return part;
}

BatchThreads::Work* BatchThreads::Begin(Batch batch) {
  const std::lock_guard lock(finishing_);
  Work& work = works_[begun_++ % works_.size()];
  work.batch = std::move(batch);
  work.unfinished = feed_.batch_size();
  work.error = nullptr;
  return &work;
}

void BatchThreads::Finish(const Part& part, const std::exception_ptr& error) {
  const std::lock_guard lock(finishing_);
  Work& work = *part.work;
  const auto note = [&](const std::exception_ptr& what, int64_t at) {
    if (!what || (work.error && work.bad_record < at)) return;
    work.error = what;
    work.bad_record = at;
  };
  const int64_t end = part.first + static_cast<int64_t>(part.records);
  note(part.failure, end);
  note(error, part.first);
  work.unfinished -= (part.failure ? feed_.batch_size() : end) - part.first;
  while (given_out_ < begun_ && works_[given_out_ % works_.size()].unfinished == 0) {
    GiveOut(&works_[given_out_++ % works_.size()]);
  }
}

void BatchThreads::GiveOut(Work* work) {
  if (failed_) return;
  failed_ = work->error != nullptr;
  failed_ ? full_.Fail(work->error) : full_.Push(std::move(work->batch));
}

}  // namespace trainer
