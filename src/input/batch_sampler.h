#pragma once
// The records of one replica, batch after batch.

#include <cstdint>
#include <exception>
#include <span>

#include "trainer/base/ranks/rank.h"
#include "trainer/input/record_source.h"
#include "trainer/input/test_shard.h"

namespace trainer {

// The batches of all replicas together take the records from a position on in turn: record
// position + k goes to rank k % count. Then the next ones begin, so that the position after a batch
// is the same for every rank. Those of `parts` ranks from `replica` on may be read together, in the
// order of the records; their batches are then one, in which they follow each other. Where whole
// batches are shared instead, each is that of a replica alone, and the position after one is that
// after its round. Used by one thread at a time.
class BatchSampler {
 public:
  // `keep`: records are copied where the source would not keep them.
  BatchSampler(RecordSource& source, int64_t batch_size, const Rank& rank, int parts, bool keep)
      : source_(source),
        part_size_(batch_size),
        rank_(static_cast<uint64_t>(rank.rank)),
        count_(static_cast<uint64_t>(rank.size)),
        parts_(static_cast<uint64_t>(parts)),
        keep_(keep && !source.stable()) {
    source_.SetStride(parts == 1 ? count_ : 1);
  }

  // From here on records are copied where the source would not keep them.
  void OwnRecords() { keep_ = !source_.stable(); }
  // From here on records know their places, as TakeAfter needs.
  void TrackPositions() { places_ = true; }

  // Shares whole batches. Only for one replica of the records, before anything is read;
  // `share.rank` must have a batch.
  void Share(const TestShard& share) { share_ = share; }

  int64_t batch_size() const { return part_size_ * static_cast<int64_t>(parts_); }  // of all parts
  int64_t fetched() const { return fetched_; }  // records of this batch

  const RecordSource& source() const { return source_; }

  // Begins a batch at this position.
  void Seek(const Position& position);

  // Fetches the batch's next records, as many as there is room for. Returns how many it got. An
  // error ends them and goes to `failure`, so that those before it can be decoded first.
  size_t Fetch(std::span<Record> records, std::exception_ptr* failure);

  // Fetches and keeps the record that comes `steps` after the one at `place`, and stays where it
  // is.
  void TakeAfter(const Position& place, uint64_t steps, Record* record);

  // After the last record of a batch: goes to where the next one begins.
  Position EndBatch();

  // The name of an item of the batch that began at `position`.
  std::string NameOfItem(const Position& position, int64_t item);

 private:
  Position Here() const { return {at_.record, at_.epoch, source_.Key()}; }
  void Advance(uint64_t records);
  uint64_t FirstOfBatch() const;
  void EndRound();

  RecordSource& source_;
  int64_t part_size_;
  uint64_t rank_, count_, parts_;
  bool keep_, places_ = false;
  TestShard share_;
  int64_t round_ = 0;  // the first batch of the present round, of the period
  Position at_;
  int64_t fetched_ = 0;
};

}  // namespace trainer
