#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>

#include "trainer/base/ranks/rank.h"
#include "trainer/input/record_sampler.h"
#include "trainer/input/test_shard.h"

namespace trainer {

// The next batches of all ranks together are the records from a position on: record position + k is
// for rank k % ranks. The position after a batch is therefore the same for every rank.
//
// One sampler may serve several virtual ranks, from `rank` on, in one batch: it reads their records
// in order, and their batches follow each other in that batch. With a test shard, whole batches are
// divided instead: each is what a single rank would read, and the position after a batch is the one
// after its round. Used by one thread at a time.
class BatchSampler {
 public:
  // `batch_size`: of one rank.
  BatchSampler(RecordSampler& sampler, int64_t batch_size, const Rank& rank, int virtual_ranks);

  // From here on records are copied unless the sampler keeps them valid.
  void OwnRecords() { owns_ = !sampler_.stable(); }
  // From here on records have positions, which TakeAfter needs.
  void TrackPositions() { tracks_positions_ = true; }
  // Divides whole batches, if one rank reads all records. `shard.rank` must have a batch.
  void SetTestShard(const TestShard& shard) { shard_ = shard; }

  int64_t rank_batch_size() const { return rank_batch_size_; }
  int64_t batch_size() const { return rank_batch_size_ * static_cast<int64_t>(virtual_ranks_); }
  int64_t taken() const { return taken_; }  // records of this batch

  // Begins a batch at this position.
  void Seek(const Position& position);

  // Reads the next records of the batch, as many as fit, and returns their number. An error ends
  // reading and is stored in `failure`, so that the records before it can be decoded first.
  size_t Take(std::span<Record> records, std::exception_ptr* failure);

  // Reads and copies the record that comes `steps` after the one at `position`, and does not move.
  void TakeAfter(const Position& position, uint64_t steps, Record* record);

  // Call it after the last record of a batch. Moves to the start of the next batch.
  Position EndBatch();

  // Names an item of the batch that began at `batch`: see RecordSampler::Describe.
  std::string RecordName(const Position& batch, int64_t item);

 private:
  Position Here() const { return {at_.record, at_.epoch, sampler_.Key()}; }
  void Skip(uint64_t records);
  uint64_t RecordsBeforeBatch() const;
  void EndRound();

  RecordSampler& sampler_;
  int64_t rank_batch_size_;
  uint64_t rank_, ranks_, virtual_ranks_;
  bool owns_ = false, tracks_positions_ = false;
  TestShard shard_;
  int64_t round_ = 0;  // index in the period of the first batch of this round
  Position at_;
  int64_t taken_ = 0;
};

}  // namespace trainer
