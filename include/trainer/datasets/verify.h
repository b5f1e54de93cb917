#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace trainer {

struct VerifyOptions {
  int threads = 1;
  size_t errors = 20;      // so many bad records are named
  bool write_crc = false;  // write new checksums if all records are good
};

struct VerifyReport {
  std::string kind;  // "LMDB"
  int64_t records = 0;
  uint64_t bytes = 0;  // of all values
  std::string first_key, last_key;
  std::map<std::string, int64_t> shapes;  // "1x28x28 bytes" or "... floats" -> records
  std::map<int, int64_t> heights, widths;
  std::map<int32_t, int64_t> labels;
  std::map<size_t, int64_t> label_counts;  // labels per record -> records with several
  int64_t unlabelled = 0;
  int64_t encoded = 0;                 // records that hold a picture file
  int64_t repeated_keys = 0;           // of tar files
  int64_t same = 0;                    // records whose content another one had before
  std::vector<std::string> same_keys;  // the first of these: "'b' is 'a' again"
  int64_t bad = 0;                     // records that cannot be used or differ from their checksum
  std::vector<std::string> errors;     // of the first of these
  std::string checksums;               // what was compared or written; "" where there are none
};

// Counts bad records. Throws as RecordScan does, and for damage that ends reading.
VerifyReport VerifyRecords(const std::string& path, const VerifyOptions& options = {});

// Prints lines "name: value".
void Print(const VerifyReport& report, std::ostream& out);

}  // namespace trainer
