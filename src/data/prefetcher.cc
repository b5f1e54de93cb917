#include "trainer/data/prefetcher.h"

#include <algorithm>
#include <utility>

#include "batch_threads.h"
#include "record_feed.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/data/bad_records.h"
#include "trainer/data/image_source.h"

namespace trainer {
namespace {

// How many records one thread fetches before it decodes them. Alone it takes as many as the source
// keeps for it; beside others few, so that a batch is spread over all threads.
BatchThreads::RecordsAtOnce AtOnce(const RecordSource& source, const PrefetchOptions& options,
                                   int threads) {
  constexpr int64_t kMost = 256;
  const int64_t batch = options.batch_size * options.parts;
  const auto within = [&](int64_t n) {
    return static_cast<size_t>(std::clamp(n, int64_t{1}, kMost));
  };
  return {within(source.RecordsStayValid() ? batch : 1), within(batch / (4 * threads))};
}

// How many may be of use: more than one core's work is rarely less than this process computes.
int MostThreads() {
  constexpr int kMost = 32;
  return std::min(AvailableThreads(), kMost);
}

// Of an automatic number: two where a batch takes one of them long, which the other halves.
int FirstThreads(const RecordSource& source, const PrefetchOptions& options, int most) {
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
int64_t Depth(const PrefetchOptions& options) {
  return (options.depth + options.parts - 1) / options.parts;
}

}  // namespace

Prefetcher::Prefetcher(const PrefetchOptions& options, const Transform& transform)
    : Prefetcher(MakeDatabaseSource(OpenCursor(options.backend, options.path), transform),
                 options) {}

Prefetcher::Prefetcher(std::unique_ptr<RecordSource> source, const PrefetchOptions& options)
    : source_(std::move(source)),
      shapes_(source_->Shapes(options.batch_size, options.labels)),
      batch_size_(options.batch_size),
      parts_(options.parts),
      pixel_numbers_(options.bytes ? source_->pixel_numbers() : nullptr),
      position_(source_->First()),
      feed_(std::make_unique<RecordFeed>(*source_, options.batch_size, options.replica,
                                         options.parts, false)) {
  const bool automatic = options.decode_threads == 0;
  const int threads = automatic ? MostThreads() : options.decode_threads;
  std::vector<std::unique_ptr<Decoder>> decoders;
  for (int i = 0; i < threads; ++i) decoders.push_back(source_->MakeDecoder());
  const BatchForm elements = pixel_numbers_ == nullptr ? BatchForm::kNumbers : BatchForm::kBytes;
  threads_ = std::make_unique<BatchThreads>(
      feed_.get(), std::move(decoders),
      automatic ? FirstThreads(*source_, options, threads) : threads,
      BatchThreads::Form{OfAllParts(shapes_, parts_), options.memory, elements}, Depth(options),
      AtOnce(*source_, options, threads), options.most_bad);
}

Prefetcher::~Prefetcher() = default;

const std::string& Prefetcher::path() const { return source_->path(); }

const WaitCounters& Prefetcher::counters() const { return threads_->counters(); }

void Prefetcher::Restore(const Position& position) {
  if (threads_->started()) {
    throw Error(ErrorCode::kInternal, "a running data source cannot be moved");
  }
  feed_->Seek(position);
  position_ = position;
}

int64_t Prefetcher::CountRecords(bool reads_keys) {
  if (threads_->started()) {
    throw Error(ErrorCode::kInternal, "the records of a running data source cannot be counted");
  }
  return source_->CountRecords(reads_keys);
}

void Prefetcher::Share(const BatchShare& share) {
  if (threads_->started()) {
    throw Error(ErrorCode::kInternal, "a running data source cannot be shared");
  }
  feed_->Share(share);
}

const Batch& Prefetcher::Next() {
  before_ = position_;
  const Batch& batch = threads_->Next();
  position_ = batch.next;
  return batch;
}

void Prefetcher::Await(int64_t batches) { threads_->Await(batches); }

bool Prefetcher::IsReady() const { return threads_->IsReady(); }

std::string Prefetcher::NameOfItem(const Position& position, int64_t item) try {
  threads_->Stop();
  return feed_->NameOfItem(position, item);
} catch (const Error&) {  // what is told is another error than this
  return "";
}

PrefetchOptions OptionsOf(const ReadingEnv& env) {
  PrefetchOptions options;
  options.decode_threads = env.decode_threads;
  options.memory = env.host_memory;
  options.bytes = env.bytes;
  options.most_bad = MostBadRecords();
  if (env.phase != caffe::TRAIN) return options;
  options.replica = env.replica;
  options.parts = env.parts;
  return options;
}

PrefetchOptions ReadPrefetchOptions(const LayerSpec& layer, std::string_view param,
                                    uint32_t batch_size, const ReadingEnv& env) {
  constexpr uint32_t kMaxDepth = 1024, kMaxBatch = 1u << 24;
  const uint32_t depth = layer.proto().data_param().prefetch();
  if (batch_size < 1 || batch_size > kMaxBatch) {
    layer.FailIn(param, "batch_size",
                 Join("batch_size is ", batch_size, "; it must be 1 to ", kMaxBatch));
  }
  if (depth < 1 || depth > kMaxDepth) {
    layer.FailIn("data_param", "prefetch",
                 Join("prefetch is ", depth, "; it must be 1 to ", kMaxDepth));
  }
  constexpr uint32_t kMostThreads = 256;
  const caffe::DataParameter& data = layer.proto().data_param();
  const uint32_t threads = std::max(data.threads(), data.parser_threads());
  if (threads > kMostThreads) {
    layer.FailIn("data_param", data.threads() == threads ? "threads" : "parser_threads",
                 Join("threads is ", threads, "; it must be at most ", kMostThreads));
  }
  PrefetchOptions options = OptionsOf(env);
  if (threads > 0) options.decode_threads = static_cast<int>(threads);
  options.batch_size = batch_size;
  options.depth = depth;
  options.labels = layer.proto().top_size() > 1;
  return options;
}

}  // namespace trainer
