#pragma once

#include "trainer/input/test_shard.h"

namespace trainer {

// What a layer also is when it can bring every count-th batch of those that it would bring alone.
class TakesShare {
 public:
  virtual ~TakesShare() = default;
  // As RecordSampler::CountRecords. Before the first Forward.
  virtual int64_t CountRecords(bool reads_keys) = 0;
  // The records of one batch.
  virtual int64_t RecordsPerBatch() const = 0;
  // Before the first Forward. From then on the state that it saves is that after the whole round.
  virtual void TakeShare(const TestShard& share) = 0;
};

}  // namespace trainer
