#pragma once
// Checksums of the records of a set, in a separate file, because databases store none.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/storage/cursor.h"

namespace trainer {

// Returns records.crc32c in a database's folder; NAME.crc32c next to any other set.
std::string ChecksumPath(const std::string& set);

// Returns the CRC32C of key and value.
uint32_t RecordCrc(std::string_view key, std::string_view value);

// Writes "trainer crc32c\n", the number of records (64 bits), the checksum of each in the order of
// reading, and that of all these bytes (32 bits each). All numbers are little-endian.
void WriteChecksums(const std::string& path, const std::vector<uint32_t>& checksums);

// Throws as ReadFile does; kData for any other content.
std::vector<uint32_t> ReadChecksums(const std::string& path);

// Compares the records of a set with their checksums. Any thread.
class ChecksumVerifier {
 public:
  ChecksumVerifier(std::string path, std::vector<uint32_t> checksums)
      : path_(std::move(path)), checksums_(std::move(checksums)) {}

  uint64_t records() const { return checksums_.size(); }
  // `ordinal` is the record's number in the set, which messages call `set`. Throws kData if the
  // record differs from the one for which the checksum was written.
  void Check(const std::string& set, uint64_t ordinal, std::string_view key,
             std::string_view value) const;

 private:
  std::string path_;
  std::vector<uint32_t> checksums_;
};

// Opens the checksums of the set at `path`, which `cursor` reads; null if it has none. Throws as
// ReadChecksums does, and kData if the number of records in the set differs.
std::unique_ptr<ChecksumVerifier> OpenVerifier(const std::string& path, const Cursor& cursor);

}  // namespace trainer
