#include <glog/logging.h>

#include "trainer/base/text.h"
#include "trainer/data/prefetcher.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

class Data final : public Layer {
 public:
  Data(const LayerSpec& spec, const LayerEnv& env)
      : spec_(spec),
        log_(env.is_root),
        prefetcher_(MakePrefetcher(spec, env.phase, env.key, env.shard, env.is_root)) {
    const caffe::DataParameter& param = spec.proto().data_param();
    const bool lmdb = param.backend() == caffe::DataParameter::LMDB;
    LOG_IF(INFO, log_) << "Opened " << (lmdb ? "lmdb " : "leveldb ") << param.source();
  }

  void Plan(PlanContext& plan) override {
    const Shape shape = prefetcher_->shape();
    plan.Out(0, shape);
    if (plan.NumOut() > 1) plan.Out(1, {shape[0]});
    if (!log_) return;
    LOG(INFO) << "output data size: " << shape[0] << "," << shape[1] << "," << shape[2] << ","
              << shape[3];
    log_ = false;
  }

  void Forward(RunContext& run) override {
    const Batch& batch = prefetcher_->Next();
    run.device().CopyToDevice(run.Out(0).data, batch.data.data(), run.Out(0).Bytes());
    if (run.NumOut() < 2) return;
    run.device().CopyToDevice(run.Out(1).data, batch.labels.data(), run.Out(1).Bytes());
  }

  std::string SaveState() const override { return prefetcher_->position().Encode(); }
  void RestoreState(const std::string& state) override {
    prefetcher_->Restore(Position::Decode(state));
  }
  const WaitCounters* Waits() const override { return &prefetcher_->counters(); }

 private:
  LayerSpec spec_;
  bool log_;
  std::unique_ptr<Prefetcher> prefetcher_;
};

const RegisterLayer<Data> kData(
    "Data",
    {.text = "Images and labels from an LMDB or LevelDB database of Datum records.\n"
             "In the order of their keys, from the start again after the last.\n"
             "top 0: (batch_size, C, H, W), as transform_param makes them. top 1 (optional): the "
             "labels, (batch_size). A thread reads `prefetch` batches ahead. A snapshot holds the "
             "position.",
     .param = "data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 1, .max_out = 2}});

}  // namespace
}  // namespace trainer
