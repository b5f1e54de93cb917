#pragma once
// Records compared with the checksums that lie beside their database.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/cursor.h"
#include "trainer/data/position.h"
#include "trainer/data/record_source.h"

namespace trainer {

// The checksums of a set: see checksum_file.h. Any thread.
class RecordChecks {
 public:
  RecordChecks(std::string path, std::vector<uint32_t> wanted)
      : path_(std::move(path)), wanted_(std::move(wanted)) {}

  uint64_t records() const { return wanted_.size(); }
  // `record.index` is its number in the order of the set. Throws kData where it is another one than
  // when the checksums were written.
  void Check(const std::string& set, const RawRecord& record) const;

 private:
  std::string path_;
  std::vector<uint32_t> wanted_;
};

// Those of the set at `path`, which `cursor` reads; null where it has none. Throws as ReadChecksums
// does, and kData where the set holds another number of records.
std::unique_ptr<RecordChecks> ReadChecksOf(const std::string& path, const Cursor& cursor);

// The number of a cursor's record in the order of its set. Positions count the records of a run
// instead, so that one search from the first record on is enough for all of them.
class StoredNumber {
 public:
  // Of a set of so many records; with 0 nobody asks for numbers, and none are found.
  explicit StoredNumber(uint64_t records) : records_(records) {}

  uint64_t now() const { return now_; }
  void Advance(uint64_t count);
  // The cursor has been moved there, and stays there.
  void Seek(const Position& position, Cursor* cursor);

 private:
  uint64_t records_, now_ = 0;
  uint64_t of_first_ = 0;  // of the record with which the run began
  bool read_on_ = false;   // since the run began or went on
};

}  // namespace trainer
