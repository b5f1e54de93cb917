#include "trainer/storage/checksums.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr std::string_view kMark = "trainer crc32c\n";
constexpr uint64_t kMaxBytes = uint64_t{1} << 33;

}  // namespace

std::string ChecksumPath(const std::string& set) {
  return IsDirectory(set) ? JoinPath(set, "records.crc32c") : set + ".crc32c";
}

uint32_t RecordCrc(std::string_view key, std::string_view value) {
  const uint64_t length = key.size();  // so that no byte changes sides unseen
  uint32_t crc = Crc32c(&length, sizeof length);
  crc = Crc32c(key.data(), key.size(), crc);
  return Crc32c(value.data(), value.size(), crc);
}

void WriteChecksums(const std::string& path, const std::vector<uint32_t>& checksums) {
  std::string text(kMark);
  const auto append = [&](const void* data, size_t bytes) {
    text.append(static_cast<const char*>(data), bytes);
  };
  const uint64_t count = checksums.size();
  append(&count, sizeof count);
  append(checksums.data(), checksums.size() * sizeof(uint32_t));
  const uint32_t sum = Crc32c(text.data(), text.size());
  append(&sum, sizeof sum);
  WriteWhole(path, text);
}

std::vector<uint32_t> ReadChecksums(const std::string& path) {
  const std::string text = ReadFile(path, kMaxBytes);
  const size_t head = kMark.size() + sizeof(uint64_t);
  uint64_t count = 0;
  uint32_t sum = 0;
  bool good = text.starts_with(kMark) && text.size() >= head + sizeof sum;
  if (good) {
    const size_t bytes = text.size() - head - sizeof sum;
    std::memcpy(&count, text.data() + kMark.size(), sizeof count);
    std::memcpy(&sum, text.data() + head + bytes, sizeof sum);
    good = bytes % sizeof sum == 0 && count == bytes / sizeof sum &&
           sum == Crc32c(text.data(), text.size() - sizeof sum);
  }
  if (!good) {
    throw Error(ErrorCode::kData, {path},
                "this is not a checksum file, or it is damaged; write it again: trainer dataset "
                "check SET --write_crc");
  }
  const char* const first = text.data() + head;
  std::vector<uint32_t> checksums(static_cast<size_t>(count));
  std::copy_n(first, count * sizeof sum, reinterpret_cast<char*>(checksums.data()));
  return checksums;
}

void ChecksumVerifier::Check(const std::string& set, uint64_t ordinal, std::string_view key,
                             std::string_view value) const {
  if (ordinal >= checksums_.size()) {
    throw Error(ErrorCode::kData, {set},
                Join("record ", QuoteKey(key), " is number ", ordinal + 1, ", but ", path_,
                     " has only ", checksums_.size(), " checksums"));
  }
  if (RecordCrc(key, value) == checksums_[static_cast<size_t>(ordinal)]) return;
  throw Error(ErrorCode::kData, {set},
              Join("record ", QuoteKey(key), " differs from its checksum in ", path_,
                   ": the record was changed or damaged after the checksum was written; copy the "
                   "data set again"));
}

std::unique_ptr<ChecksumVerifier> OpenVerifier(const std::string& path, const Cursor& cursor) {
  const std::string file = ChecksumPath(path);
  if (!Exists(file)) return nullptr;
  std::vector<uint32_t> checksums = ReadChecksums(file);
  const int64_t records = cursor.Count();
  if (records >= 0 && static_cast<uint64_t>(records) != checksums.size()) {
    throw Error(
        ErrorCode::kData, {path},
        Join("has ", records, " records, but ", file, " has checksums of ", checksums.size(),
             "; if you changed the set on purpose, write the checksums again: trainer "
             "dataset check SET --write_crc"));
  }
  LOG(INFO) << EscapeControl(Join(path, ": records are compared with ", file));
  return std::make_unique<ChecksumVerifier>(file, std::move(checksums));
}

}  // namespace trainer
