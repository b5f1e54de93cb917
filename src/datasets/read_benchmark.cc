#include "trainer/datasets/read_benchmark.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "trainer/base/file/file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/random/permutation.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/parallel_map.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/input/source.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/record_scan.h"

namespace trainer {
namespace {

constexpr size_t kMostKeys = 1000000;  // that are drawn from

class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// The share of a file's pages that the system holds in memory; -1 where it does not say.
double CachedShare(int fd, uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes == 0) return 0;
  void* const map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return -1;
  std::vector<unsigned char> held((bytes + page - 1) / page);
  const bool told = mincore(map, bytes, held.data()) == 0;
  munmap(map, bytes);
  if (!told) return -1;
  const auto count = std::ranges::count_if(held, [](unsigned char one) { return (one & 1) != 0; });
  return static_cast<double>(count) / static_cast<double>(held.size());
}

// Has the system forget the files; returns what it did not forget.
double ForgetFiles(const std::vector<std::string>& files) {
  double held = 0, all = 0;
  if (files.empty()) return -1;
  for (const std::string& path : files) {
    const FileHandle file = OpenForReading(path);
    fdatasync(file.get());  // only what is on the disk can be forgotten
    posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    const uint64_t bytes = FileSize(path);
    const double share = CachedShare(file.get(), bytes);
    if (share < 0) return -1;
    held += share * static_cast<double>(bytes);
    all += static_cast<double>(bytes);
  }
  return all > 0 ? held / all : 0;
}

class Measuring {
 public:
  Measuring(const std::string& path, const ReadBenchmarkOptions& options)
      : path_(path), options_(options) {}

  std::vector<ReadRate> Run() {
    InOrder(true);
    InOrder(false);
    const std::string kind = DetectFormat(path_);
    if (kind != "HDF5" && kind != "NUMPY") {
      AtRandom(kind, true);
      AtRandom(kind, false);
    }
    Decoded(1);
    if (options_.threads > 1) Decoded(options_.threads);
    return std::move(rates_);
  }

 private:
  ReadRate Begin(const std::string& order, bool cold) {
    progress_.SetDoing(Join("Reading ", path_, " ", order, cold ? ", cold" : ""));
    ReadRate rate;
    rate.order = order;
    rate.cold = cold;
    if (cold) rate.cached = ForgetFiles(FilesOfSet(path_));
    return rate;
  }

  void End(const Stopwatch& clock, ReadRate* rate) {
    rate->seconds = clock.Seconds();
    rates_.push_back(*rate);
    progress_.Add(1);
  }

  // For one record there is time, however long it took to open the set.
  bool HasTime(const Stopwatch& clock, const ReadRate& rate) const {
    return rate.records == 0 || clock.Seconds() < options_.seconds;
  }

  // The warm one reads what the cold one has read before it.
  void InOrder(bool cold) {
    ReadRate rate = Begin("one after the other", cold);
    const int64_t most = cold ? -1 : rates_.back().records;
    const Stopwatch clock;
    RecordScan scan(path_);
    StoredRecord record;
    while (rate.records != most && HasTime(clock, rate) && scan.Next(&record)) {
      ++rate.records;
      rate.bytes += record.value.size();
      if (cold && keys_.size() < kMostKeys) keys_.push_back(record.key);
    }
    End(clock, &rate);
  }

  void AtRandom(const std::string& backend, bool cold) {
    ReadRate rate = Begin("at random", cold);
    const int64_t most = cold ? static_cast<int64_t>(keys_.size()) : rates_.back().records;
    std::vector<uint32_t> order;
    Permute({1, 0}, 0, 0, keys_.size(), &order);
    const Stopwatch clock;
    const std::unique_ptr<Cursor> cursor = OpenCursor(backend, path_);
    std::string value;
    while (rate.records != most && HasTime(clock, rate)) {
      cursor->Seek(keys_[order[static_cast<size_t>(rate.records)]]);
      value = cursor->Value();  // a copy touches all its pages
      ++rate.records;
      rate.bytes += value.size();
    }
    End(clock, &rate);
  }

  struct Decoding {
    StoredRecord record;
    DatumParser parser{ColorMode::kAsStored};
  };

  void Decoded(int threads) {
    ReadRate rate = Begin("decoded", false);
    rate.threads = threads;
    const Stopwatch clock;
    RecordScan scan(path_);
    const int64_t most = rates_[1].records;
    int64_t read = 0;
    ParallelMap<Decoding> work(
        threads,
        [&](Decoding* one) {
          const bool in_time = read == 0 || clock.Seconds() < options_.seconds;
          return read++ < most && in_time && scan.Next(&one->record);
        },
        [&](Decoding* one) { one->parser.Parse(path_, one->record.key, one->record.value); });
    while (const Decoding* const one = work.Next()) {
      ++rate.records;
      rate.bytes += one->record.value.size();
    }
    End(clock, &rate);
  }

  const std::string& path_;
  const ReadBenchmarkOptions& options_;
  std::vector<std::string> keys_;
  std::vector<ReadRate> rates_;
  Progress progress_{"Reading", "measurements", 0, Progress::InLog::kNothing};
};

// Files spread over a list, as many as are worth measuring.
std::vector<std::string> Sample(const std::vector<std::string>& files) {
  constexpr size_t kMost = 2000;
  std::vector<std::string> sample;
  for (size_t i = 0; i < std::min(files.size(), kMost); ++i) {
    sample.push_back(files[files.size() <= kMost ? i : i * files.size() / kMost]);
  }
  return sample;
}

ReadRate ReadFiles(const std::vector<std::string>& files, double seconds, bool cold, bool decode) {
  ReadRate rate;
  rate.order = decode ? "decoded" : "one after the other";
  rate.cold = cold;
  if (cold) rate.cached = ForgetFiles(files);
  Image image;
  const Stopwatch clock;
  for (const std::string& file : files) {
    if (rate.records > 0 && clock.Seconds() >= seconds) break;
    const std::string bytes = ReadFile(file, uint64_t{1} << 30);
    if (decode)
      DecodeImage(bytes, ColorMode::kColor, {file}, "this picture", &image, BitDepth::kFloats);
    rate.bytes += bytes.size();
    ++rate.records;
  }
  rate.seconds = clock.Seconds();
  return rate;
}

ReadRate ReadRows(const LayerSpec& layer, double seconds, bool cold) {
  ReadRate rate;
  rate.order = "one after the other";
  rate.cold = cold;
  const std::string list =
      ResolvePath(layer.proto().hdf5_data_param().source(), layer.Where().file);
  if (cold) rate.cached = ForgetFiles(FilesOfSet(list));
  const Stopwatch clock;
  const auto rows = OpenHdf5Rows(layer, {caffe::TEST, {}, {}, 1});
  while (rate.records == 0 || (rate.seconds = clock.Seconds()) < seconds) {
    const Batch& batch = rows->Next();
    rate.records += rows->shape(0)[0];
    for (int i = 0; i < batch.num_outputs(); ++i) rate.bytes += batch.output(i).size_bytes();
    if (rows->position().epoch > 0) break;
  }
  rate.seconds = clock.Seconds();
  return rate;
}

}  // namespace

std::vector<ReadRate> BenchmarkFiles(const std::vector<std::string>& files,
                                     const ReadBenchmarkOptions& options) {
  std::vector<std::string> sample = Sample(files);
  std::vector<ReadRate> rates{ReadFiles(sample, options.seconds, true, false)};
  sample.resize(static_cast<size_t>(rates[0].records));  // the others read what was read cold
  rates.push_back(ReadFiles(sample, options.seconds, false, false));
  rates.push_back(ReadFiles(sample, options.seconds, false, true));
  return rates;
}

std::vector<ReadRate> BenchmarkRows(const LayerSpec& layer, const ReadBenchmarkOptions& options) {
  std::vector<ReadRate> rates;
  for (const bool cold : {true, false}) rates.push_back(ReadRows(layer, options.seconds, cold));
  return rates;
}

std::vector<ReadRate> BenchmarkReads(const std::string& path, const ReadBenchmarkOptions& options) {
  return Measuring(path, options).Run();
}

}  // namespace trainer
