#pragma once
// What the layers share whose batches are read ahead.

#include <memory>
#include <string>

#include "data/batch_upload.h"
#include "trainer/input/batch_queue.h"
#include "trainer/layers/awaits_batches.h"
#include "trainer/layers/counts_bad_records.h"
#include "trainer/layers/items.h"
#include "trainer/layers/layer.h"
#include "trainer/layers/takes_share.h"

namespace trainer {

// Output i is output i of the prefetcher's batches, or of the part of one that the pass computes.
// On a device that runs later a batch of one part is copied while the pass before it computes.
class PrefetchingDataLayer : public Layer,
                             public NamesItems,
                             public TakesShare,
                             public CountsBadRecords,
                             public AwaitsBatches {
 public:
  explicit PrefetchingDataLayer(std::unique_ptr<BatchQueue> prefetcher);

  void Setup(SetupContext& ctx) override;
  void Prepare(PrepareContext& ctx) override;
  void Forward(const RunContext& run) override;

  std::string SaveState() const override;
  void RestoreState(const std::string& state) override;
  void AwaitBatches(int passes) override;
  void TakeShare(const TestShard& share) override { prefetcher_->SetTestShard(share); }
  int64_t CountRecords(bool reads_keys) override { return prefetcher_->CountRecords(reads_keys); }
  int64_t RecordsPerBatch() const override { return prefetcher_->batch_size(); }
  std::string NameOfItem(int64_t item, uint32_t batches_ago) override;
  const InputCounters* Waits() const override { return &prefetcher_->counters(); }
  bool SkipsBadRecords() const override;
  int64_t TakeBadRecords() override;
  void AddBadRecords(int64_t of_all) override;

 protected:
  const BatchQueue& prefetcher() const { return *prefetcher_; }

 private:
  const Batch& TakeNext();
  const Position& Here() const;
  void NotePositions();
  void StagePart(const RunContext& run);
  void StageAhead(const RunContext& run);

  std::unique_ptr<BatchQueue> prefetcher_;
  const Batch* batch_ = nullptr;  // that the last pass used, where it was not copied ahead
  int part_ = 0;                  // of it
  int64_t bad_ = 0;               // records in the batches that were used since they were counted
  uint64_t bad_epoch_ = 0;
  int64_t bad_in_epoch_ = 0;  // of all replicas
  // Null where batches are not copied ahead, and these are not used then:
  std::unique_ptr<BatchUpload> stage_;
  bool sent_ = false;          // a batch that no pass has used yet
  int64_t bad_sent_ = 0;       // records in it
  Position after_;             // the last batch that a pass used
  Position before_[kAgo + 1];  // it, and before those that were used before it
};

// Images (N, C, H, W) in output 0, and labels (N) in output 1 where there is one.
class PrefetchedImages : public PrefetchingDataLayer {
 public:
  using PrefetchingDataLayer::PrefetchingDataLayer;

  void Setup(SetupContext& ctx) override;

 private:
  bool logged_ = false;
};

}  // namespace trainer
