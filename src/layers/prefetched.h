#pragma once
// What the layers share whose batches are read ahead.

#include <glog/logging.h>

#include <memory>
#include <string>
#include <utility>

#include "trainer/data/prefetcher.h"
#include "trainer/layers/items.h"
#include "trainer/layers/layer.h"

namespace trainer {

inline ReadingEnv ReadingOf(const LayerEnv& env) {
  ReadingEnv reading;
  reading.phase = env.phase;
  reading.key = env.key;
  reading.replica = env.replica;
  reading.host_memory = env.host_memory;
  return reading;
}

// Output i is output i of the prefetcher's batches.
class Prefetched : public Layer, public NamesItems {
 public:
  explicit Prefetched(std::unique_ptr<Prefetcher> prefetcher)
      : prefetcher_(std::move(prefetcher)) {}

  void Describe(DescribeContext& plan) override {
    for (int i = 0; i < plan.NumOut(); ++i) plan.Out(i, prefetcher_->shape(i));
  }

  void Forward(const RunContext& run) override {
    const Batch& batch = prefetcher_->Next();
    for (int i = 0; i < run.NumOut(); ++i) {
      run.device().CopyToDevice(run.Out(i).data, batch.output(i).data(), run.Out(i).Bytes());
    }
  }

  std::string SaveState() const override { return prefetcher_->position().Encode(); }
  void RestoreState(const std::string& state) override {
    prefetcher_->Restore(Position::Decode(state));
  }
  std::string NameOfItem(int64_t item) override { return prefetcher_->NameOfItem(item); }
  const WaitCounters* Waits() const override { return &prefetcher_->counters(); }

 protected:
  const Prefetcher& prefetcher() const { return *prefetcher_; }

 private:
  std::unique_ptr<Prefetcher> prefetcher_;
};

// Images (N, C, H, W) in output 0, and labels (N) in output 1 where there is one.
class PrefetchedImages : public Prefetched {
 public:
  using Prefetched::Prefetched;

  void Describe(DescribeContext& plan) override {
    Prefetched::Describe(plan);
    if (plan.NumOut() > 1) plan.OutStaysF32(1);
    if (logged_) return;
    const Shape& shape = prefetcher().shape();
    LOG(INFO) << "output data size: " << shape[0] << "," << shape[1] << "," << shape[2] << ","
              << shape[3];
    logged_ = true;
  }

 private:
  bool logged_ = false;
};

}  // namespace trainer
