#include "record_feed.h"

#include <glog/logging.h>

namespace trainer {

void RecordFeed::Seek(const Position& position) {
  source_.Seek(position);
  at_ = position;
  slot_ = 0;
}

size_t RecordFeed::Fetch(std::span<RawRecord> records, std::exception_ptr* failure) {
  size_t fetched = 0;
  try {
    for (; fetched < records.size() && slot_ < batch_size_; ++fetched, ++slot_) {
      Advance(slot_ == 0 ? rank_ : count_);  // not after the record, which it may take away
      RawRecord& record = records[fetched];
      source_.Fetch(&record);
      record.number = at_.record;
      record.slot = slot_;
      if (keep_) record.Keep();
    }
  } catch (...) {
    *failure = std::current_exception();
  }
  return fetched;
}

Position RecordFeed::EndBatch() {
  Advance(count_ - rank_);
  slot_ = 0;
  at_.key = source_.Key();
  return at_;
}

std::string RecordFeed::NameOfItem(const Position& position, int64_t item) {
  Seek(position);
  Advance(rank_ + static_cast<uint64_t>(item) * count_);
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
