#pragma once
// What `trainer dataset` does: makes databases and describes them.

#include <cstdint>
#include <map>
#include <ostream>
#include <string>

namespace trainer {

struct DigitsOptions {
  std::string folder;  // made if it is not there
  std::string backend = "LMDB";
  int64_t train = 20000, test = 4000;  // records, each 1x28x28
  uint64_t seed = 1;
};

struct DigitsPaths {
  std::string train, test;  // folder/train_lmdb, folder/test_lmdb; or ..._leveldb
};

// Both functions write under a hidden name that is renamed at the end, so that a failure leaves no
// database behind. Keys are %08d in order. Errors: those of CreateDb and DbWriter; kUsage for a
// count below 1 or above 10^8, where the keys would no longer be in order.
DigitsPaths WriteDigits(const DigitsOptions& options);

// The records of a pair of MNIST's files, in file order. Returns their number. Errors also: those
// of IdxReader.
int64_t WriteIdx(const std::string& images, const std::string& labels, const std::string& database,
                 const std::string& backend = "LMDB");

// A database read from end to end.
struct DatabaseInfo {
  std::string backend;
  int64_t records = 0;
  uint64_t bytes = 0;  // of all values
  std::string first_key, last_key;
  std::map<std::string, int64_t> shapes;  // "1x28x28 bytes" or "... floats" -> records
  std::map<int32_t, int64_t> labels;
  int64_t unlabelled = 0;
  int64_t bad = 0;          // records that cannot be used
  std::string first_error;  // of the first such record
};

// Errors: those of OpenCursor, and kNoInput for a folder without a database. Bad records are
// counted, not thrown.
DatabaseInfo DescribeDatabase(const std::string& path);

// As lines "name: value".
void Print(const DatabaseInfo& info, std::ostream& out);

}  // namespace trainer
