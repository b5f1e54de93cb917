// Measures the path from a database to a batch, in records/s and bytes/s of pixels. The databases
// are in a temporary folder, and in the page cache.

#include <benchmark/benchmark.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench_folder.h"
#include "datum.pb.h"
#include "trainer/base/thread/blocking_queue.h"
#include "trainer/datasets/digits.h"
#include "trainer/input/batch_queue.h"
#include "trainer/input/source.h"
#include "trainer/input/transform.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/database_writer.h"
#include "trainer/storage/datum.h"

namespace trainer {
namespace {

// Holds one database for each backend and image size, created on first use.
class Databases {
 public:
  std::string Get(const std::string& backend, int channels, int side) {
    const std::string path = folder_.path() + "/" + backend + std::to_string(side);
    if (!std::filesystem::exists(path)) Write(backend, channels, side, path);
    return path;
  }

 private:
  static void Write(const std::string& backend, int channels, int side, const std::string& path) {
    const auto writer = CreateDb(backend, path);
    caffe::Datum datum;
    datum.set_channels(channels);
    datum.set_height(side);
    datum.set_width(side);
    datum.set_label(3);
    const int count = side > 100 ? 200 : 20000;
    std::string pixels(static_cast<size_t>(channels * side * side), '\0');
    for (int i = 0; i < count; ++i) {
      for (size_t p = 0; p < pixels.size(); p += 7) pixels[p] = static_cast<char>(p + i);
      datum.set_data(pixels);
      char key[16];
      std::snprintf(key, sizeof key, "%08d", i);
      writer->Put(key, datum.SerializeAsString());
    }
    writer->Commit();
  }
  BenchFolder folder_;
};

Databases& Dbs() {
  static Databases databases;
  return databases;
}

// Reads the benchmark's arguments: backend (0 LMDB, 1 LevelDB), channels, side.
struct Source {
  explicit Source(const benchmark::State& state)
      : backend(state.range(0) == 0 ? "LMDB" : "LEVELDB"),
        bytes(state.range(1) * state.range(2) * state.range(2)),
        path(Dbs().Get(backend, static_cast<int>(state.range(1)),
                       static_cast<int>(state.range(2)))) {}
  std::string backend;
  int64_t bytes;
  std::string path;
};

void Count(benchmark::State& state, const Source& source, int64_t records) {
  state.SetItemsProcessed(records);
  state.SetBytesProcessed(records * source.bytes);
}

// Reads the first and last byte of each record, which touches every page of small records.
void CursorScan(benchmark::State& state) {
  const Source source(state);
  const auto cursor = OpenCursor(source.backend, source.path);
  for (auto _ : state) {
    benchmark::DoNotOptimize(cursor->Value().front() + cursor->Value().back());
    cursor->Next();
  }
  Count(state, source, state.iterations());
}

void CursorParse(benchmark::State& state) {
  const Source source(state);
  const auto cursor = OpenCursor(source.backend, source.path);
  DatumParser parser;
  for (auto _ : state) {
    benchmark::DoNotOptimize(parser.Parse(source.path, cursor->Key(), cursor->Value()).label);
    cursor->Next();
  }
  Count(state, source, state.iterations());
}

LayerSpec DataLayerSpec(bool augment, int64_t side) {
  caffe::LayerParameter proto;
  proto.mutable_transform_param()->set_scale(0.00390625f);
  if (augment) {
    proto.mutable_transform_param()->set_mirror(true);
    proto.mutable_transform_param()->set_crop_size(static_cast<uint32_t>(side * 7 / 8));
    proto.mutable_transform_param()->add_mean_value(127);
  }
  return {proto, SourceRef{"bench", 1, 1}};
}

// Transforms one record repeatedly, with its pixels in the cache. Argument 3: crop and mirror.
void TransformRecord(benchmark::State& state) {
  const Source source(state);
  const auto cursor = OpenCursor("LMDB", source.path);
  const Transform transform(DataLayerSpec(state.range(3) != 0, state.range(2)), caffe::TRAIN, {});
  DatumParser parser;
  const DatumView& datum = parser.Parse(source.path, cursor->Key(), cursor->Value());
  std::vector<float> out(static_cast<size_t>(source.bytes));
  uint64_t number = 0;
  for (auto _ : state) {
    transform.ToFloats(datum, number++, out.data());
    benchmark::ClobberMemory();
  }
  Count(state, source, state.iterations());
}

// Reads batches of 64, as a training thread that does nothing else. Argument 3 is as above;
// argument 4 is the number of threads that read and decode.
void PrefetcherBatches(benchmark::State& state) {
  const Source source(state);
  BatchQueueOptions options;
  options.batch_size = 64;
  options.decode_threads = static_cast<int>(state.range(4));
  const Transform transform(DataLayerSpec(state.range(3) != 0, state.range(2)), caffe::TRAIN, {});
  BatchQueue prefetcher(MakeDatabaseSource(OpenCursor(source.backend, source.path), transform),
                        options);
  prefetcher.Next();
  for (auto _ : state) benchmark::DoNotOptimize(prefetcher.Next().output(0).data());
  Count(state, source, state.iterations() * 64);
}

// Copies as many bytes as a batch of floats has, for comparison with the above.
void CopyBatch(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(64 * state.range(0) * state.range(1) * state.range(1)) * 4;
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * 64);
}

void QueueRoundTrip(benchmark::State& state) {
  BlockingQueue<int> there(4), back(4);
  const std::jthread echo([&](const std::stop_token& stop) {
    try {
      for (;;) back.Push(there.Pop(stop), stop);
    } catch (const QueueStopped&) {
    }
  });
  for (auto _ : state) {
    there.Push(1);
    benchmark::DoNotOptimize(back.Pop());
  }
}

void DrawDigits(benchmark::State& state) {
  uint64_t index = 0;
  for (auto _ : state) benchmark::DoNotOptimize(DrawDigit(1, 0, index++).label);
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(CursorScan)->ArgsProduct({{0, 1}, {1}, {28}})->ArgsProduct({{0, 1}, {3}, {256}});
BENCHMARK(CursorParse)->ArgsProduct({{0, 1}, {1}, {28}})->ArgsProduct({{0, 1}, {3}, {256}});
BENCHMARK(TransformRecord)
    ->ArgsProduct({{0}, {1}, {28}, {0, 1}})
    ->ArgsProduct({{0}, {3}, {256}, {0, 1}});
BENCHMARK(PrefetcherBatches)
    ->ArgsProduct({{0, 1}, {1}, {28}, {0, 1}, {1, 2}})
    ->ArgsProduct({{0, 1}, {3}, {256}, {0, 1}, {1, 2}})
    ->UseRealTime();
BENCHMARK(CopyBatch)->Args({1, 28})->Args({3, 256});
BENCHMARK(QueueRoundTrip)->UseRealTime();
BENCHMARK(DrawDigits);

}  // namespace
}  // namespace trainer
