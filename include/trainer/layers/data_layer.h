#pragma once
// Layers that read records, as the net and the solver know them. Layer::data_layer() finds them.

#include <cstdint>
#include <string>

#include "trainer/input/counters.h"
#include "trainer/input/test_shard.h"
#include "trainer/layers/layer.h"

namespace trainer {

// SaveState gives the position after the last batch that a pass used, as Position::Encode writes
// it, and RestoreState resumes there.
class DataLayer : public Layer {
 public:
  DataLayer* data_layer() override { return this; }

  // Returns the number of records in the data set. If it is not known without reading all keys,
  // they are read if `reads_keys` is set; otherwise it returns -1. 0 for a source without epochs.
  // Call it before the first Forward.
  virtual int64_t CountRecords(bool reads_keys) = 0;
  // Returns the records of one batch of one virtual rank.
  virtual int64_t RecordsPerBatch() const = 0;
  // Restricts Forward to the batches of `shard`. SaveState then gives the position after the whole
  // round of batches. Call it before the first Forward.
  virtual void SetTestShard(const TestShard& shard) = 0;

  // Waits until the batches of the next `passes` passes are ready, or as many as are read ahead. If
  // one of these batches cannot be read, throws the error now that its pass would throw.
  virtual void WaitForBatches(int passes) = 0;

  // Describes record `index` of the last batch, or of the batch `batches_ago` (at most
  // kMaxBatchesAgo) before it: "record '00000007' of data/train_lmdb", or "" if it is not known.
  // The layer gives no further batch, so this is for the message that ends a run.
  static constexpr uint32_t kMaxBatchesAgo = 1;
  virtual std::string RecordName(int64_t index, uint32_t batches_ago) = 0;

  // Returns true if bad records are skipped (see input/bad_records.h). If not, the first one ends
  // the run, and none are counted.
  virtual bool SkipsBadRecords() const = 0;
  // Returns the number of bad records in the batches that this rank's passes used since the last
  // call.
  virtual int64_t TakeBadRecords() = 0;
  // Adds the bad records of all ranks to the count of this epoch, which snapshots hold. Throws
  // kData when there are more than may be skipped.
  virtual void AddBadRecords(int64_t of_all) = 0;

  // Returns the number of the current epoch: how often the layer has returned to the first record.
  virtual int64_t epoch() const = 0;

  // How long the net waited for batches, and what the reading threads did.
  virtual const InputCounters& counters() const = 0;
};

}  // namespace trainer
