#pragma once
// Compares records with the checksums of their database.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/input/position.h"
#include "trainer/input/record_source.h"
#include "trainer/storage/cursor.h"

namespace trainer {

// The checksums of a set: see checksum_file.h. Any thread.
class ChecksumVerifier {
 public:
  ChecksumVerifier(std::string path, std::vector<uint32_t> wanted)
      : path_(std::move(path)), wanted_(std::move(wanted)) {}

  uint64_t records() const { return wanted_.size(); }
  // `record.index` is the record's number in its set. Throws kData if the record differs from the
  // one for which the checksum was written.
  void Check(const std::string& set, const Record& record) const;

 private:
  std::string path_;
  std::vector<uint32_t> wanted_;
};

// Opens the checksums of the set at `path`, which `cursor` reads; null if it has none. Throws as
// ReadChecksums does, and kData if the set has another number of records.
std::unique_ptr<ChecksumVerifier> OpenVerifier(const std::string& path, const Cursor& cursor);

// The number of a cursor's record in its set. Positions count the records of a run instead, so one
// search from the first record on is enough for all of them.
class StoredNumber {
 public:
  // `records`: the size of the set; 0 if nobody asks for numbers, and then none are looked for.
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
