#include "record_checks.h"

#include <glog/logging.h>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/checksums.h"

namespace trainer {

void ChecksumVerifier::Check(const std::string& set, const Record& record) const {
  if (record.index >= wanted_.size()) {
    throw Error(ErrorCode::kData, {set},
                Join("record ", QuoteKey(record.key), " is number ", record.index + 1, ", but ",
                     path_, " has only ", wanted_.size(), " checksums"));
  }
  if (RecordCrc(record.key, record.value) == wanted_[static_cast<size_t>(record.index)]) return;
  throw Error(ErrorCode::kData, {set},
              Join("record ", QuoteKey(record.key), " differs from its checksum in ", path_,
                   ": the record was changed or damaged after the checksum was written; copy the "
                   "data set again"));
}

std::unique_ptr<ChecksumVerifier> OpenVerifier(const std::string& path, const Cursor& cursor) {
  const std::string file = ChecksumPath(path);
  if (!Exists(file)) return nullptr;
  std::vector<uint32_t> wanted = ReadChecksums(file);
  const int64_t records = cursor.Count();
  if (records >= 0 && static_cast<uint64_t>(records) != wanted.size()) {
    throw Error(ErrorCode::kData, {path},
                Join("has ", records, " records, but ", file, " has checksums of ", wanted.size(),
                     "; if you changed the set on purpose, write the checksums again: trainer "
                     "dataset check SET --write_crc"));
  }
  LOG(INFO) << EscapeControl(Join(path, ": records are compared with ", file));
  return std::make_unique<ChecksumVerifier>(file, std::move(wanted));
}

void StoredNumber::Advance(uint64_t count) {
  read_on_ = true;
  if (records_ > 0) now_ = (now_ + count) % records_;
}

void StoredNumber::Seek(const Position& position, Cursor* cursor) {
  if (records_ == 0) return;
  const uint64_t passed = position.record % records_;
  if (position.key.empty()) {
    read_on_ = false;
    now_ = 0;
    of_first_ = (records_ - passed) % records_;
  } else if (read_on_) {
    now_ = (of_first_ + passed) % records_;
  } else {
    cursor->SeekFirst();
    for (now_ = 0; cursor->Key() != position.key; ++now_) cursor->Next();
    now_ %= records_;
    of_first_ = (now_ + records_ - passed) % records_;
  }
}

}  // namespace trainer
