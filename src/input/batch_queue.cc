#include "trainer/input/batch_queue.h"

#include <algorithm>
#include <utility>

#include "batch_sampler.h"
#include "batch_workers.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

// How many records one thread fetches before it decodes them. Alone it takes as many as the source
// keeps for it; beside others few, so that a batch is spread over all threads.
BatchWorkers::ChunkSize AtOnce(const RecordSource& source, const BatchQueueOptions& options,
                               int threads) {
  constexpr int64_t kMost = 256;
  const int64_t batch = options.batch_size * options.parts;
  const auto within = [&](int64_t n) {
    return static_cast<size_t>(std::clamp(n, int64_t{1}, kMost));
  };
  return {within(source.stable() ? batch : 1), within(batch / (4 * threads))};
}

// How many may be of use: more than one core's work is rarely less than this process computes.
int MostThreads() {
  constexpr int kMost = 32;
  return std::min(AvailableThreads(), kMost);
}

// Of an automatic number: two where a batch takes one of them long, which the other halves.
int FirstThreads(const RecordSource& source, const BatchQueueOptions& options, int most) {
  constexpr double kLong = 5e-3;
  const double batch = source.DecodeSeconds() * static_cast<double>(options.batch_size);
  return std::min(batch >= kLong ? 2 : 1, most);
}

// Those of all parts, one after the other.
std::vector<Shape> OfAllParts(std::vector<Shape> shapes, int parts) {
  for (Shape& shape : shapes) shape = shape.With(0, shape[0] * parts);
  return shapes;
}

// Batches of several parts are larger, and as much is kept ready with fewer of them.
int64_t Depth(const BatchQueueOptions& options) {
  return (options.depth + options.parts - 1) / options.parts;
}

}  // namespace

BatchQueue::BatchQueue(const BatchQueueOptions& options, const Transform& transform)
    : BatchQueue(MakeDatabaseSource(OpenCursor(options.backend, options.path), transform),
                 options) {}

BatchQueue::BatchQueue(std::unique_ptr<RecordSource> source, const BatchQueueOptions& options)
    : source_(std::move(source)),
      shapes_(source_->Shapes(options.batch_size, options.labels)),
      batch_size_(options.batch_size),
      parts_(options.parts),
      normalization_(options.bytes ? source_->normalization() : nullptr),
      position_(source_->First()),
      feed_(std::make_unique<BatchSampler>(*source_, options.batch_size, options.rank,
                                           options.parts, false)) {
  const bool automatic = options.decode_threads == 0;
  const int threads = automatic ? MostThreads() : options.decode_threads;
  std::vector<std::unique_ptr<Decoder>> decoders;
  for (int i = 0; i < threads; ++i) decoders.push_back(source_->MakeDecoder());
  const PixelType elements = normalization_ == nullptr ? PixelType::kFloat : PixelType::kByte;
  threads_ = std::make_unique<BatchWorkers>(
      feed_.get(), std::move(decoders),
      automatic ? FirstThreads(*source_, options, threads) : threads,
      BatchWorkers::Form{OfAllParts(shapes_, parts_), options.memory, elements}, Depth(options),
      AtOnce(*source_, options, threads), options.most_bad);
}

BatchQueue::~BatchQueue() = default;

const std::string& BatchQueue::path() const { return source_->path(); }

const InputCounters& BatchQueue::counters() const { return threads_->counters(); }

void BatchQueue::Restore(const Position& position) {
  if (threads_->started()) {
    throw Error(ErrorCode::kInternal, "a running data source cannot be moved");
  }
  feed_->Seek(position);
  position_ = position;
}

int64_t BatchQueue::CountRecords(bool reads_keys) {
  if (threads_->started()) {
    throw Error(ErrorCode::kInternal, "the records of a running data source cannot be counted");
  }
  return source_->CountRecords(reads_keys);
}

void BatchQueue::Share(const TestShard& share) {
  if (threads_->started()) {
    throw Error(ErrorCode::kInternal, "a running data source cannot be shared");
  }
  feed_->Share(share);
}

const Batch& BatchQueue::Next() {
  before_ = position_;
  const Batch& batch = threads_->Next();
  position_ = batch.next;
  return batch;
}

void BatchQueue::Await(int64_t batches) { threads_->Await(batches); }

bool BatchQueue::IsReady() const { return threads_->IsReady(); }

std::string BatchQueue::NameOfItem(const Position& position, int64_t item) try {
  threads_->Stop();
  return feed_->NameOfItem(position, item);
} catch (const Error&) {  // what is told is another error than this
  return "";
}

}  // namespace trainer
