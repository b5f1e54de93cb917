#include "batch_sampler.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/log/log.h"

namespace trainer {

void BatchSampler::Seek(const Position& position) {
  source_.Seek(position);
  at_ = position;
  fetched_ = 0;
  round_ = 0;
}

size_t BatchSampler::Fetch(std::span<Record> records, std::exception_ptr* failure) {
  size_t fetched = 0;
  try {
    for (; fetched < records.size() && fetched_ < batch_size(); ++fetched, ++fetched_) {
      const auto parts = static_cast<int64_t>(parts_);
      const int64_t part = fetched_ % parts;
      // Not after the record, which it may take away.
      Advance(fetched_ == 0 ? FirstOfBatch() : part == 0 ? count_ - parts_ + 1 : 1);
      Record& record = records[fetched];
      source_.Fetch(&record);
      record.number = at_.record;
      record.slot = part * part_size_ + fetched_ / parts;
      if (places_) record.place = Here();
      if (keep_) record.Keep();
    }
  } catch (...) {
    *failure = std::current_exception();
  }
  return fetched;
}

void BatchSampler::TakeAfter(const Position& place, uint64_t steps, Record* record) {
  const Position here = Here();
  source_.Seek(place);
  source_.Advance(steps);
  source_.Fetch(record);
  record->number = place.record + steps;
  record->Keep();
  source_.Seek(here);
}

Position BatchSampler::EndBatch() {
  Advance(count_ - rank_ - parts_ + 1);
  EndRound();
  fetched_ = 0;
  at_.key = source_.Key();
  return at_;
}

std::string BatchSampler::NameOfItem(const Position& position, int64_t item) {
  Seek(position);
  const auto part = static_cast<uint64_t>(item / part_size_);
  Advance(FirstOfBatch() + part + static_cast<uint64_t>(item % part_size_) * count_);
  return source_.Name();
}

// Where this replica's records of a round begin.
uint64_t BatchSampler::FirstOfBatch() const {
  const int64_t before = round_ == 0 ? share_.skip_before : 0;
  return rank_ + static_cast<uint64_t>(before + share_.rank * part_size_);
}

// Goes past the batches of others: what is left of the round, and a last one of the period in which
// this replica has none, and past what no batch of the period has.
void BatchSampler::EndRound() {
  const auto in_round = [&] { return std::min<int64_t>(share_.count, share_.period - round_); };
  int64_t others = in_round() - share_.rank - 1;
  round_ += share_.count;
  if (round_ < share_.period && in_round() <= share_.rank) {
    others += in_round();
    round_ = share_.period;
  }
  const bool ends_period = round_ >= share_.period;
  if (ends_period) round_ = 0;
  Advance(static_cast<uint64_t>(others * part_size_ + (ends_period ? share_.skip_after : 0)));
}

void BatchSampler::Advance(uint64_t records) {
  if (records == 0) return;
  uint64_t ended = source_.Advance(records);
  at_.record += records;
  at_.epoch += ended;
  for (; ended > 0; --ended)
    LOG_IF(INFO, LogsDetails()) << "Restarting data prefetching from start.";
}

}  // namespace trainer
