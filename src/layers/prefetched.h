#pragma once
// What the layers share whose batches a thread reads ahead.

#include <glog/logging.h>

#include <memory>
#include <string>
#include <utility>

#include "trainer/data/prefetcher.h"
#include "trainer/layers/items.h"
#include "trainer/layers/layer.h"

namespace trainer {

// Images (N, C, H, W) in output 0, and labels (N) in output 1 where there is one.
class Prefetched : public Layer, public NamesItems {
 public:
  explicit Prefetched(std::unique_ptr<Prefetcher> prefetcher)
      : prefetcher_(std::move(prefetcher)) {}

  void Describe(DescribeContext& plan) override {
    const Shape shape = prefetcher_->shape();
    plan.Out(0, shape);
    if (plan.NumOut() > 1) {
      plan.Out(1, {shape[0]});
      plan.OutStaysF32(1);
    }
    if (logged_) return;
    LOG(INFO) << "output data size: " << shape[0] << "," << shape[1] << "," << shape[2] << ","
              << shape[3];
    logged_ = true;
  }

  void Forward(const RunContext& run) override {
    const Batch& batch = prefetcher_->Next();
    run.device().CopyToDevice(run.Out(0).data, batch.data.data(), run.Out(0).Bytes());
    if (run.NumOut() < 2) return;
    run.device().CopyToDevice(run.Out(1).data, batch.labels.data(), run.Out(1).Bytes());
  }

  std::string SaveState() const override { return prefetcher_->position().Encode(); }
  void RestoreState(const std::string& state) override {
    prefetcher_->Restore(Position::Decode(state));
  }
  std::string NameOfItem(int64_t item) override { return prefetcher_->NameOfItem(item); }
  const WaitCounters* Waits() const override { return &prefetcher_->counters(); }

 private:
  std::unique_ptr<Prefetcher> prefetcher_;
  bool logged_ = false;
};

}  // namespace trainer
