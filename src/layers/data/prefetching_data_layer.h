#pragma once
// Data layers whose batches a BatchQueue reads ahead.

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/input/batch_queue.h"
#include "trainer/layers/data_layer.h"

namespace trainer {

// Top i is array i of the queue's batches, or the rows of it that belong to the pass's virtual
// rank. On an asynchronous device, without virtual ranks, the next batch is uploaded while the
// device computes on this one.
class PrefetchingDataLayer : public DataLayer {
 public:
  explicit PrefetchingDataLayer(std::unique_ptr<BatchQueue> queue);
  ~PrefetchingDataLayer() override;

  void Setup(SetupContext& ctx) override;
  void Prepare(PrepareContext& ctx) override;
  void Forward(const RunContext& run) override;

  // The position also holds the number of bad records in its epoch, over all ranks.
  std::string SaveState() const override;
  void RestoreState(const std::string& state) override;

  int64_t CountRecords(bool reads_keys) override { return queue_->CountRecords(reads_keys); }
  int64_t RecordsPerBatch() const override { return queue_->batch_size(); }
  void SetTestShard(const TestShard& shard) override { queue_->SetTestShard(shard); }
  void WaitForBatches(int passes) override;
  // `index` counts within the rows of the last pass's virtual rank.
  std::string RecordName(int64_t index, uint32_t batches_ago) override;
  bool SkipsBadRecords() const override;
  int64_t TakeBadRecords() override;
  void AddBadRecords(int64_t of_all) override;
  int64_t epoch() const override { return static_cast<int64_t>(CurrentPosition().epoch); }
  const InputCounters& counters() const override { return queue_->counters(); }

 protected:
  const BatchQueue& queue() const { return *queue_; }

 private:
  class BatchUpload;

  // Takes the next batch from the queue, when the copies of the last one are finished.
  const Batch& NextBatch();
  // Returns the position after the last batch that a pass used.
  const Position& CurrentPosition() const;
  // Moves `after_` and `before_` on by one batch. Called when a pass uses a batch.
  void RecordPosition();
  // Forward with virtual ranks: virtual rank 0 takes a batch, and each pass uploads its rank's
  // rows.
  void UploadVirtualRank(const RunContext& run);
  // Forward without virtual ranks: finishes the upload of this pass's batch, starting it if it is
  // late, and starts the upload of the next batch if it is ready.
  void UploadNext(const RunContext& run);

  std::unique_ptr<BatchQueue> queue_;
  const Batch* batch_ = nullptr;  // the last pass's, if batches are not uploaded ahead
  int virtual_rank_ = 0;          // of the last pass
  int64_t bad_ = 0;               // bad records in the batches used since TakeBadRecords
  uint64_t bad_epoch_ = 0;        // the epoch that bad_in_epoch_ counts
  int64_t bad_in_epoch_ = 0;      // of all ranks

  // The members from here on are used only if batches pass through a BatchUpload.
  std::unique_ptr<BatchUpload> upload_;  // null: Forward copies each batch itself
  bool uploaded_ = false;                // a batch is on the device that no pass has used yet
  int64_t bad_uploaded_ = 0;             // bad records in that batch
  Position after_;                       // the position after the last batch that a pass used
  Position before_[kMaxBatchesAgo + 1];  // before_[k]: before the batch used k batches ago
};

// A PrefetchingDataLayer of images: top 0 (N, C, H, W), and labels, (N) or (N, K), as top 1, if
// there is one.
// The first Setup logs the shape as Caffe does.
class PrefetchedImages : public PrefetchingDataLayer {
 public:
  using PrefetchingDataLayer::PrefetchingDataLayer;

  void Setup(SetupContext& ctx) override;

 private:
  bool logged_ = false;
};

}  // namespace trainer
