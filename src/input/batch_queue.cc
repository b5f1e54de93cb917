#include "trainer/input/batch_queue.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "batch_sampler.h"
#include "input_clock.h"
#include "thread_tuner.h"
#include "trainer/base/error/error.h"
#include "trainer/base/thread/spin.h"
#include "trainer/base/thread/threads.h"

namespace trainer {
namespace {

// A consumer that sleeps wakes later than batches of small records come, so it spins first.
constexpr int64_t kLongestSpin = 50'000;  // nanoseconds

size_t RangeOf(int64_t records) {
  constexpr int64_t kMost = 256;
  return static_cast<size_t>(std::clamp(records, int64_t{1}, kMost));
}

// The limit of an automatic number: training rarely computes less than one core's work per batch.
int MostThreads() {
  constexpr int kMost = 32;
  return std::min(AvailableThreads(), kMost);
}

// An automatic number begins with two if decoding a batch takes one thread long.
int FirstThreads(const DecoderFactory& factory, const BatchQueueOptions& options) {
  constexpr double kLong = 5e-3;
  if (options.decode_threads != 0) return options.decode_threads;
  const double batch = factory.decode_seconds() * static_cast<double>(options.batch_size);
  return std::min(batch >= kLong ? 2 : 1, MostThreads());
}

// Batches of several virtual ranks are larger, so fewer of them are kept ready.
int64_t DepthOf(const BatchQueueOptions& options) {
  return (options.depth + options.virtual_ranks - 1) / options.virtual_ranks;
}

}  // namespace

BatchQueue::BatchQueue(RecordSource source, const BatchQueueOptions& options)
    : source_(std::move(source)),
      batch_size_(options.batch_size),
      virtual_ranks_(options.virtual_ranks),
      depth_(DepthOf(options)),
      memory_(options.memory),
      most_bad_(options.most_bad),
      position_(source_.sampler->Start()),
      free_(static_cast<size_t>(depth_) + 1, QueueOrder::kLifo),
      full_(static_cast<size_t>(depth_) + 1),
      pending_(static_cast<size_t>(depth_) + 1) {
  DecoderFactory& factory = *source_.decoders;
  factory.Inspect(*source_.sampler);
  shapes_ = factory.Shapes(options.batch_size, options.labels);
  normalization_ = options.bytes ? factory.normalization() : nullptr;
  sampler_ = std::make_unique<BatchSampler>(*source_.sampler, options.batch_size, options.rank,
                                            options.virtual_ranks);
  if (most_bad_ >= 0) sampler_->TrackPositions();
  const int threads = options.decode_threads == 0 ? MostThreads() : options.decode_threads;
  const int first = FirstThreads(factory, options);
  for (int i = 0; i < threads; ++i) decoders_.push_back(factory.Make());
  tunes_ = first < threads;
  tuner_ = std::make_unique<ThreadTuner>(first, threads);
  wanted_ = static_cast<size_t>(first);
  counters_.threads = first;
  // A single worker reads what stays valid; several read few, so that all share a batch.
  const int64_t batch = sampler_->batch_size();
  single_range_ = RangeOf(source_.sampler->stable() ? batch : 1);
  shared_range_ = RangeOf(batch / (4 * threads));
}

BatchQueue::~BatchQueue() { Stop(); }

void BatchQueue::RequireNotStarted(const char* what) const {
  if (started()) throw Error(ErrorCode::kInternal, what);
}

int64_t BatchQueue::CountRecords(bool reads_keys) {
  RequireNotStarted("the records of a running data source cannot be counted");
  return source_.sampler->CountRecords(reads_keys);
}

void BatchQueue::Restore(const Position& position) {
  RequireNotStarted("a running data source cannot be moved");
  sampler_->Seek(position);
  position_ = position;
}

void BatchQueue::SetTestShard(const TestShard& shard) {
  RequireNotStarted("a running data source cannot be shared");
  sampler_->SetTestShard(shard);
}

const Batch& BatchQueue::Next() {
  before_ = position_;
  if (stopped_) throw Error(ErrorCode::kInternal, "a data source that was stopped is read");
  StartOnce();
  if (has_current_) free_.Push(std::move(current_));
  has_current_ = false;
  Wait(1);
  current_ = full_.Pop();
  has_current_ = true;
  CountWork(current_);
  position_ = current_.next;
  return current_;
}

void BatchQueue::Await(int64_t batches) {
  StartOnce();
  Wait(static_cast<size_t>(std::min(batches, depth_)));
}

std::string BatchQueue::RecordName(const Position& position, int64_t item) try {
  Stop();
  return sampler_->RecordName(position, item);
} catch (const Error&) {  // the message is about another error
  return "";
}

void BatchQueue::Stop() {
  stopped_ = true;
  stop_.request_stop();  // for all, before joining one
  for (std::jthread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void BatchQueue::StartOnce() {
  if (started()) return;
  std::vector<Shape> shapes = shapes_;  // of all virtual ranks together
  for (Shape& shape : shapes) shape = shape.With(0, shape[0] * virtual_ranks_);
  const PixelType type = normalization_ == nullptr ? PixelType::kFloat : PixelType::kByte;
  for (int64_t i = 0; i <= depth_; ++i) free_.Push(MakeBatch(shapes, memory_, type));
  threads_.reserve(decoders_.size());
  if (wanted_ > 1) {
    sampler_->OwnRecords();
    return StartThreads(wanted_);
  }
  single_ = true;
  threads_.emplace_back([this, stop = stop_.get_token()] { RunSingle(stop); });
}

void BatchQueue::StartThreads(size_t count) {
  while (threads_.size() < count) {
    threads_.emplace_back(
        [this, stop = stop_.get_token(), i = threads_.size()] { RunShared(i, stop); });
  }
}

void BatchQueue::Wait(size_t count) {
  if (full_.Count() >= count) return;
  if (took_ && full_.WouldWait() && LogsWait(++counters_.waits)) LOG(INFO) << "Waiting for data";
  const double begin = InputNow();
  NoteWait();  // and spin as long as no other thread needs the core
  const int64_t end = MonotonicNs() + std::min(kLongestSpin, SpinTime());
  while (full_.Count() < count && MonotonicNs() < end) __builtin_ia32_pause();
  full_.Await(count);
  const double waited = InputNow() - begin;
  (took_ ? counters_.wait_seconds : counters_.first_wait_seconds) += waited;
  waited_ += waited;
}

void BatchQueue::CountWork(const Batch& batch) {
  counters_.work.Add(batch.work);
  const bool first = !std::exchange(took_, true);
  const double waited = std::exchange(waited_, 0);
  if (!tunes_) return;
  const double now = InputNow();
  const double period = now - std::exchange(last_taken_, now);
  if (first) return;
  const WorkSeconds& all = counters_.work;
  const bool decoding_is_slower = (all.decode + all.transform) / counters_.threads > all.read;
  tuner_->Note(period, waited, decoding_is_slower, full_.Count());
  if (tuner_->threads() == counters_.threads) return;
  counters_.threads = tuner_->threads();
  wanted_ = static_cast<size_t>(tuner_->threads());
  VLOG(1) << "Batches are decoded by " << counters_.threads << " threads from now on";
  StartThreads(wanted_);
}

}  // namespace trainer
