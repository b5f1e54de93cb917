#include "batch_sampler.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/log/log.h"

namespace trainer {

BatchSampler::BatchSampler(RecordSampler& sampler, int64_t batch_size, const Rank& rank,
                           int virtual_ranks)
    : sampler_(sampler),
      rank_batch_size_(batch_size),
      rank_(static_cast<uint64_t>(rank.rank)),
      ranks_(static_cast<uint64_t>(rank.size)),
      virtual_ranks_(static_cast<uint64_t>(virtual_ranks)) {
  sampler_.SetStride(virtual_ranks == 1 ? ranks_ : 1);
}

void BatchSampler::Seek(const Position& position) {
  sampler_.Seek(position);
  at_ = position;
  taken_ = 0;
  round_ = 0;
}

size_t BatchSampler::Take(std::span<Record> records, std::exception_ptr* failure) {
  const auto virtual_ranks = static_cast<int64_t>(virtual_ranks_);
  size_t taken = 0;
  try {
    for (; taken < records.size() && taken_ < batch_size(); ++taken, ++taken_) {
      const int64_t virtual_rank = taken_ % virtual_ranks;
      // Skips before the record and not after it, because skipping may invalidate the record.
      Skip(taken_ == 0         ? RecordsBeforeBatch()
           : virtual_rank == 0 ? ranks_ - virtual_ranks_ + 1
                               : 1);
      Record& record = records[taken];
      sampler_.Get(&record);
      record.number = at_.record;
      record.batch_index = virtual_rank * rank_batch_size_ + taken_ / virtual_ranks;
      if (tracks_positions_) record.position = Here();
      if (owns_) record.Own();
    }
  } catch (...) {
    *failure = std::current_exception();
  }
  return taken;
}

void BatchSampler::TakeAfter(const Position& position, uint64_t steps, Record* record) {
  const Position here = Here();
  sampler_.Seek(position);
  sampler_.Skip(steps);
  sampler_.Get(record);
  record->number = position.record + steps;
  record->Own();
  sampler_.Seek(here);
}

Position BatchSampler::EndBatch() {
  Skip(ranks_ - rank_ - virtual_ranks_ + 1);
  EndRound();
  taken_ = 0;
  at_.key = sampler_.Key();
  return at_;
}

std::string BatchSampler::RecordName(const Position& batch, int64_t item) {
  Seek(batch);
  const auto virtual_rank = static_cast<uint64_t>(item / rank_batch_size_);
  const auto row = static_cast<uint64_t>(item % rank_batch_size_);
  Skip(RecordsBeforeBatch() + virtual_rank + row * ranks_);
  return sampler_.Describe();
}

// Records from the start of the round to the first record of this rank.
uint64_t BatchSampler::RecordsBeforeBatch() const {
  const int64_t before = round_ == 0 ? shard_.skip_before : 0;
  return rank_ + static_cast<uint64_t>(before + shard_.rank * rank_batch_size_);
}

// Skips the batches of the other ranks in this round; if this rank has no batch in the last round
// of the period, also that round; and at the end of the period the records that no batch uses.
void BatchSampler::EndRound() {
  const auto in_round = [&] { return std::min<int64_t>(shard_.count, shard_.period - round_); };
  int64_t others = in_round() - shard_.rank - 1;
  round_ += shard_.count;
  if (round_ < shard_.period && in_round() <= shard_.rank) {
    others += in_round();
    round_ = shard_.period;
  }
  const bool ends_period = round_ >= shard_.period;
  if (ends_period) round_ = 0;
  Skip(static_cast<uint64_t>(others * rank_batch_size_ + (ends_period ? shard_.skip_after : 0)));
}

void BatchSampler::Skip(uint64_t records) {
  if (records == 0) return;
  uint64_t ended = sampler_.Skip(records);
  at_.record += records;
  at_.epoch += ended;
  for (; ended > 0; --ended)
    LOG_IF(INFO, LogsDetails()) << "Restarting data prefetching from start.";
}

}  // namespace trainer
