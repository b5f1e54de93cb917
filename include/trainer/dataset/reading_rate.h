#pragma once
// How fast a set of records is read.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"

namespace trainer {

struct ReadingRate {
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

struct ReadingOptions {
  double seconds = 2;  // at most, of each measurement
  int threads = 1;     // for the last one
};

// Cold and warm, in order and, but of HDF5 files, by random keys; then decoded, by one thread and
// by all. Errors: those of OpenRecords, and of records that cannot be decoded.
std::vector<ReadingRate> MeasureReading(const std::string& path, const ReadingOptions& options);

// The same of pictures that are files of their own: read one after the other, cold and warm, and
// decoded by one thread. Of a long list a part that is spread over it is read.
std::vector<ReadingRate> MeasureFiles(const std::vector<std::string>& files,
                                      const ReadingOptions& options);
// The rows that an HDF5Data layer reads, cold and warm; reading them makes numbers of them, too.
std::vector<ReadingRate> MeasureRows(const LayerSpec& layer, const ReadingOptions& options);

// The files that hold a set's records. Throws as ListTarFiles does.
std::vector<std::string> FilesOfSet(const std::string& path);

}  // namespace trainer
