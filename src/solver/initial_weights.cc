#include "initial_weights.h"

#include <glog/logging.h>

#include <algorithm>

#include "sharded_model.h"
#include "trainer/base/error/error.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"
#include "trainer/net/load_weights.h"

namespace trainer {
namespace {

bool IsZero(const ParamStore& store, const Param& param) {
  std::vector<float> values(static_cast<size_t>(param.count()));
  store.Export(param, param.weight, values);
  return std::ranges::all_of(values, [](float value) { return value == 0; });
}

// Warns about layers whose weights are all zero and are not trained, so their output does not
// depend on their input. Most likely a file of weights was forgotten, or its layers have other
// names.
void WarnOfZeroWeights(const ParamStore& store, const std::vector<Param*>& params) {
  std::vector<std::string> layers;
  for (const Param* param : params) {
    const bool is_fixed = param->grad == nullptr && param->lr_mult == 0 && !param->is_running_stat;
    if (is_fixed && param->index == 0 && IsZero(store, *param)) layers.push_back(param->layer);
  }
  if (layers.empty()) return;
  LOG(WARNING) << EscapeControl(
      Join("The weights of ", FirstNames(layers),
           " are all zero and are not trained (lr_mult: 0); load them from a file with --weights"));
}

// Warns about frozen layers that no file gave weights: they compute random features for the whole
// run.
void WarnOfFrozenFillers(const std::vector<std::string>& frozen, const WeightLoader& loading) {
  std::vector<std::string> random;
  for (const std::string& layer : frozen) {
    if (!loading.HasLoaded(layer)) random.push_back(layer);
  }
  if (random.empty()) return;
  LOG(WARNING) << EscapeControl(
      Join("frozen layers that no weights file has keep the values of their fillers: ",
           FirstNames(random), "; load their weights with --weights, or do not freeze them"));
}

void RequireEqualWeights(Communicator& group, uint32_t own_hash) {
  const std::vector<std::string> hashes = group.Gather(Join(own_hash));
  for (size_t rank = 1; rank < hashes.size(); ++rank) {
    if (hashes[rank] == hashes[0]) continue;
    throw Error(ErrorCode::kProtocol,
                Join("the weights of rank ", rank,
                     " differ from those of rank 0 after rank 0 sent its own: the network between "
                     "them, or the memory of one of them, is faulty"));
  }
}

}  // namespace

void LoadWeights(const SolverContext& run, const TrainingModel& model, const Tester& tester,
                 const std::vector<std::string>& files, const std::vector<std::string>& reset) {
  std::vector<Net*> nets = {model.net.get()};
  for (const SolverTest& test : tester.tests()) {
    if (test.net != nullptr) nets.push_back(test.net.get());
  }
  WeightLoader loading(nets);
  if (run.pipeline == nullptr && !files.empty()) loading.ForTraining(reset);
  if (run.pipeline != nullptr && !reset.empty()) {
    throw Error(ErrorCode::kUnavailable,
                "--reset does not work with strategy 'pipeline'; give the layer another name, so "
                "that no weights of the file match it");
  }
  bool any = false;
  for (const std::string& file : files) {
    LOG(INFO) << "Finetuning from " << EscapeControl(file);
    const caffe::NetParameter own = OwnStage(run, ReadModel(file, loading.net_file()));
    if (run.pipeline != nullptr && own.layer().empty()) continue;
    loading.Copy(own, file);
    any = true;
  }
  if (any) loading.Finish();
  WarnOfFrozenFillers(model.frozen, loading);
  WarnOfZeroWeights(model.params, model.net->params());
  if (model.ema) model.ema->Restart();
}

void BroadcastWeights(const SolverContext& run, const TrainingModel& model, const Tester& tester) {
  constexpr size_t kChunk = 1 << 18;  // floats
  std::vector<float> host;
  uint32_t hash = 0;
  // Weights may be in shared memory: all ranks must have finished writing them.
  run.group->Barrier();
  const auto broadcast_from = [&](const Device& device, float* values, size_t count) {
    for (size_t begin = 0; begin < count; begin += kChunk) {
      host.resize(std::min(kChunk, count - begin));
      const size_t bytes = host.size() * sizeof(float);
      device.CopyToHost(host.data(), values + begin, bytes);
      run.group->Broadcast(host);
      device.CopyToDevice(values + begin, host.data(), bytes);
      hash = Crc32c(host.data(), bytes, hash);
    }
  };
  const auto broadcast = [&](float* values, size_t count) {
    broadcast_from(run.device, values, count);
  };
  broadcast(model.params.Weights().data(), model.params.Weights().size());
  if (model.params.weight_memory() != nullptr) {
    broadcast(model.params.RunningStats().data(), model.params.RunningStats().size());
  }
  const std::vector<Param*>& params = model.net->params();
  for (const std::vector<float*>& state : model.optimizer->state_arrays()) {
    for (size_t i = 0; i < state.size(); ++i) {
      if (state[i] == nullptr) continue;
      broadcast_from(model.state_store().device(), state[i],
                     static_cast<size_t>(params[i]->count()));
    }
  }
  for (const Param* param : tester.ParamsBeyond(*model.net)) {
    broadcast(param->weight, static_cast<size_t>(param->count()));
  }
  if (model.ema) broadcast(model.ema->numbers().data(), model.ema->numbers().size());
  RequireEqualWeights(*run.group, hash);
}

}  // namespace trainer
