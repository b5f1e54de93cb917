// Compares input with what is attainable: JPEG decoding with libjpeg-turbo's own interface, LevelDB
// with its own iterator, and a shuffled epoch with reading each key, from a cold cache.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <leveldb/db.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#if TRAINER_TURBOJPEG
#include <turbojpeg.h>
#endif

#include "bench_folder.h"
#include "datum.pb.h"
#include "trainer/base/random/permutation.h"
#include "trainer/datasets/read_benchmark.h"
#include "trainer/image/image.h"
#include "trainer/input/source.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/database_writer.h"
#include "trainer/storage/format.h"

namespace trainer {
namespace {

constexpr int kHeight = 375, kWidth = 500;

// Returns slopes and edges: 62 KiB with grain, as from a camera at dusk, else 22 KiB. Grain costs
// Huffman decoding (0.53 of 0.86 ms by libjpeg-turbo 2.1), which scaling does not save: libjpeg
// itself is 1.13 times as fast at 1/2 with grain, 1.6 times without.
std::string MakePhotograph(bool grain) {
  Image image{3, kHeight, kWidth, {}};
  uint32_t noise = 1;
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        noise = noise * 1664525 + 1013904223;
        const double wave = 90 * std::sin(0.03 * x + c) * std::cos(0.02 * y - c);
        const int edge = (x / 60 + y / 50) % 2 == 0 ? 12 : -12;
        const int speck = grain ? static_cast<int>(noise >> 27) - 16 : 0;
        image.pixels.push_back(static_cast<uint8_t>(128 + wave + edge + speck));
      }
    }
  }
  return EncodeImage(image, "jpg", 90);
}

const std::string& Photograph(int64_t grain) {
  static const std::string files[] = {MakePhotograph(false), MakePhotograph(true)};
  return files[grain];
}

void CountPictures(benchmark::State& state, int64_t grain) {
  state.SetItemsProcessed(state.iterations());
  state.counters["KiB"] = static_cast<double>(Photograph(grain).size()) / 1024;
}

// Argument 0: whether the picture has grain.
void JpegWhole(benchmark::State& state) {
  const std::string& file = Photograph(state.range(0));
  Image image;
  for (auto _ : state) {
    DecodeImage(file, ColorMode::kAsStored, {"bench"}, "it", &image);
    benchmark::DoNotOptimize(image.pixels.data());
  }
  CountPictures(state, state.range(0));
}

// Decodes the middle part. Argument 0: its percentage of each side. Argument 1: the divisor of its
// size (0: unscaled). Argument 2: whether the picture has grain.
void JpegPart(benchmark::State& state) {
  const int height = kHeight * static_cast<int>(state.range(0)) / 100;
  const int width = kWidth * static_cast<int>(state.range(0)) / 100;
  const int by = static_cast<int>(state.range(1));
  const CropChooser choose = [&](int, int) {
    return CropRequest{{(kWidth - width) / 2, (kHeight - height) / 2, width, height},
                       by == 0 ? 0 : height / by,
                       by == 0 ? 0 : width / by};
  };
  const std::string& file = Photograph(state.range(2));
  Image image;
  DecodedRegion held;
  for (auto _ : state) {
    DecodeImage(file, ColorMode::kAsStored, {"bench"}, "it", &image, BitDepth::kBytes, &choose,
                &held);
    benchmark::DoNotOptimize(image.pixels.data());
  }
  CountPictures(state, state.range(2));
}

#if TRAINER_TURBOJPEG
void JpegTurbo(benchmark::State& state) {
  const std::unique_ptr<void, int (*)(tjhandle)> handle(tjInitDecompress(), tjDestroy);
  std::vector<uint8_t> pixels(size_t{kHeight} * kWidth * 3);
  const auto* bytes = reinterpret_cast<const unsigned char*>(Photograph(1).data());
  for (auto _ : state) {
    const int failed = tjDecompress2(handle.get(), bytes, Photograph(1).size(), pixels.data(),
                                     kWidth, 0, kHeight, TJPF_BGR, TJFLAG_ACCURATEDCT);
    if (failed != 0) state.SkipWithError(tjGetErrorStr2(handle.get()));
    benchmark::DoNotOptimize(pixels.data());
  }
  CountPictures(state, 1);
}
BENCHMARK(JpegTurbo);
#endif

// A database with records of 12 KiB, whose files can be dropped from the page cache.
class ColdDatabase {
 public:
  ColdDatabase(const std::string& backend, int records) : records_(records) {
    const auto writer = CreateDb(backend, path());
    caffe::Datum datum;
    datum.set_channels(3);
    datum.set_height(64);
    datum.set_width(64);
    std::string pixels(size_t{3} * 64 * 64, '\0');
    for (size_t p = 0; p < pixels.size(); ++p) pixels[p] = static_cast<char>(p * 31 + p / 97);
    for (int i = 0; i < records; ++i) {
      std::memcpy(pixels.data(), &i, sizeof i);
      datum.set_data(pixels);
      char key[16];
      std::snprintf(key, sizeof key, "%08d", i);
      writer->Put(key, datum.SerializeAsString());
    }
    writer->Commit();
  }
  std::string path() const { return folder_.path() + "/db"; }
  double ReadAheadKib() const { return folder_.ReadAheadKib(); }
  int records() const { return records_; }

  void Forget() const {
    for (const std::string& file : FilesOfSet(path())) {
      const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
      fdatasync(fd);
      posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      close(fd);
    }
  }

 private:
  int records_;
  BenchFolder folder_;
};

// The set has 4 GiB, because a disk may read 8 MiB around each of the first hundred misses, which
// is nearly all of a small set, whatever the order of the reads.
ColdDatabase& Lmdb() {
  static ColdDatabase database("LMDB", 340'000);
  return database;
}
ColdDatabase& LevelDb() {
  static ColdDatabase database("LEVELDB", 8000);
  return database;
}

int64_t Touch(std::string_view value) {
  int64_t sum = 0;
  for (size_t i = 0; i < value.size(); i += 512) sum += value[i];
  return sum;
}

// Limits the time of reads from a cold cache: reading everything may take an hour on a slow disk.
constexpr std::chrono::seconds kColdTime{15};

// Calls read(i) for the records from `first` on, as many as the time allows.
template <class Read>
void ReadCold(benchmark::State& state, int first, const Read& read) {
  int64_t records = 0;
  const auto end = std::chrono::steady_clock::now() + kColdTime;
  for (int i = first; i < Lmdb().records() && std::chrono::steady_clock::now() < end; ++i) {
    read(i);
    ++records;
  }
  state.SetItemsProcessed(records);
  state.counters["records"] = static_cast<double>(records);
  state.counters["read_ahead_KiB"] = Lmdb().ReadAheadKib();
}

// Reads an epoch in shuffled order, as a Data layer does, without decoding.
void ShuffledEpochCold(benchmark::State& state) {
  caffe::LayerParameter layer;
  for (auto _ : state) {
    state.PauseTiming();
    Lmdb().Forget();
    state.ResumeTiming();
    const auto source =
        MakeDatabaseSource(OpenCursor("LMDB", Lmdb().path()),
                           Transform({layer, SourceRef{"bench", 1, 1}}, caffe::TRAIN, {}), nullptr,
                           ShuffleOptions{0, {1, 2}});
    source.sampler->SetStride(1);
    Record record;
    int64_t sum = 0;
    ReadCold(state, 0, [&](int) {
      source.sampler->Get(&record);
      sum += Touch(record.value);
      source.sampler->Skip(1);
    });
    benchmark::DoNotOptimize(sum);
  }
}

// Reads records in random order by their keys, through LMDB's default map. The first keys are not
// measured: the system reads ahead around them at first, and only then notices that this does not
// help.
void RandomKeysCold(benchmark::State& state) {
  constexpr int kFirst = 400;
  std::vector<uint32_t> order;
  Permute({1, 2}, 0, 0, static_cast<size_t>(Lmdb().records()), &order);
  for (auto _ : state) {
    state.PauseTiming();
    Lmdb().Forget();
    const auto cursor = OpenCursor("LMDB", Lmdb().path());
    int64_t sum = 0;
    const auto read = [&](int i) {
      char key[16];
      std::snprintf(key, sizeof key, "%08u", order[static_cast<size_t>(i)]);
      cursor->Seek(key);
      sum += Touch(cursor->Value());
    };
    for (int i = 0; i < kFirst; ++i) read(i);
    state.ResumeTiming();
    ReadCold(state, kFirst, read);
    benchmark::DoNotOptimize(sum);
  }
}

void LevelDbByCursor(benchmark::State& state) {
  const auto cursor = OpenCursor("LEVELDB", LevelDb().path());
  int64_t sum = 0;
  for (auto _ : state) {
    sum += Touch(cursor->Value());
    cursor->Next();
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}

// Uses the options that the cursor uses: each block is compared with its checksum.
void LevelDbByIterator(benchmark::State& state) {
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::DB* raw = nullptr;
  if (!leveldb::DB::Open(options, LevelDb().path(), &raw).ok()) {
    return state.SkipWithError("cannot open the LevelDB");
  }
  const std::unique_ptr<leveldb::DB> database(raw);
  leveldb::ReadOptions reading;
  reading.verify_checksums = true;
  const std::unique_ptr<leveldb::Iterator> at(database->NewIterator(reading));
  at->SeekToFirst();
  int64_t sum = 0;
  for (auto _ : state) {
    sum += Touch({at->value().data(), at->value().size()});
    at->Next();
    if (!at->Valid()) at->SeekToFirst();
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(JpegWhole)->Arg(0)->Arg(1);
BENCHMARK(JpegPart)->Args({30, 0, 1})->Args({60, 0, 1})->ArgsProduct({{100}, {2, 4}, {0, 1}});
BENCHMARK(LevelDbByCursor);
BENCHMARK(LevelDbByIterator);
BENCHMARK(ShuffledEpochCold)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(RandomKeysCold)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainer
