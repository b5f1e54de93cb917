#include "record_feed.h"

#include <glog/logging.h>

namespace trainer {

void RecordFeed::Seek(const Position& position) {
  source_.Seek(position);
  at_ = position;
  fetched_ = 0;
}

size_t RecordFeed::Fetch(std::span<RawRecord> records, std::exception_ptr* failure) {
  size_t fetched = 0;
  try {
    for (; fetched < records.size() && fetched_ < batch_size(); ++fetched, ++fetched_) {
      const auto parts = static_cast<int64_t>(parts_);
      const int64_t part = fetched_ % parts;
      // Not after the record, which it may take away.
      Advance(fetched_ == 0 ? rank_ : part == 0 ? count_ - parts_ + 1 : 1);
      RawRecord& record = records[fetched];
      source_.Fetch(&record);
      record.number = at_.record;
      record.slot = part * part_size_ + fetched_ / parts;
      if (keep_) record.Keep();
    }
  } catch (...) {
    *failure = std::current_exception();
  }
  return fetched;
}

Position RecordFeed::EndBatch() {
  Advance(count_ - rank_ - parts_ + 1);
  fetched_ = 0;
  at_.key = source_.Key();
  return at_;
}

std::string RecordFeed::NameOfItem(const Position& position, int64_t item) {
  Seek(position);
  const auto part = static_cast<uint64_t>(item / part_size_);
  Advance(rank_ + part + static_cast<uint64_t>(item % part_size_) * count_);
  return source_.Name();
}

void RecordFeed::Advance(uint64_t records) {
  if (records == 0) return;
  uint64_t ended = source_.Advance(records);
  at_.record += records;
  at_.epoch += ended;
  for (; ended > 0; --ended) LOG(INFO) << "Restarting data prefetching from start.";
}

}  // namespace trainer
