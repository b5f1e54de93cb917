#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"

namespace trainer {

struct ReadRate {
  std::string order;  // "one after the other", "at random", "decoded"
  bool cold = false;  // the system had forgotten its files before
  double cached = 0;  // of a cold one: the share of the files that it still held; -1: not known
  int threads = 1;
  int64_t records = 0;
  uint64_t bytes = 0;  // of the records as they are stored
  double seconds = 0;

  double RecordsPerSecond() const {
    return seconds > 0 ? static_cast<double>(records) / seconds : 0;
  }
  double BytesPerSecond() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

struct ReadBenchmarkOptions {
  double seconds = 2;  // at most, of each measurement
  int threads = 1;     // for the last one
};

// Measures a set cold and warm: in order and, except HDF5 files, by random keys; then decoded, by
// one thread and by all. Errors: as RecordScan throws, and of records that cannot be decoded.
std::vector<ReadRate> BenchmarkReads(const std::string& path, const ReadBenchmarkOptions& options);

// Measures a sample of the files: read in order, cold and warm, and decoded by one thread.
std::vector<ReadRate> BenchmarkFiles(const std::vector<std::string>& files,
                                     const ReadBenchmarkOptions& options);
// Measures the rows that an HDF5Data layer reads, converted to floats, cold and warm.
std::vector<ReadRate> BenchmarkRows(const LayerSpec& layer, const ReadBenchmarkOptions& options);

}  // namespace trainer
