// Broadcasts rank 0's weights and optimizer state, so that all ranks start from the same ones.

#include <algorithm>

#include "solver_context.h"
#include "tester.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"
#include "trainer/solver/solver.h"

namespace trainer {

// Broadcasts rank 0's numbers, whatever files the other ranks have read, and then checks by a hash
// that all ranks have the same.
void Solver::BroadcastWeights() {
  constexpr size_t kChunk = 1 << 18;  // floats
  std::vector<float> host;
  uint32_t hash = 0;
  run_->group
      ->Barrier();  // weights may be in shared memory: all ranks must have finished writing them
  const auto broadcast_from = [&](const Device& device, float* values, size_t count) {
    for (size_t begin = 0; begin < count; begin += kChunk) {
      host.resize(std::min(kChunk, count - begin));
      const size_t bytes = host.size() * sizeof(float);
      device.CopyToHost(host.data(), values + begin, bytes);
      run_->group->Broadcast(host);
      device.CopyToDevice(values + begin, host.data(), bytes);
      hash = Crc32c(host.data(), bytes, hash);
    }
  };
  const auto broadcast = [&](float* values, size_t count) {
    broadcast_from(run_->device, values, count);
  };
  broadcast(model_->params.Weights().data(), model_->params.Weights().size());
  if (model_->params.weight_memory() != nullptr) {
    broadcast(model_->params.RunningStats().data(), model_->params.RunningStats().size());
  }
  const std::vector<Param*>& params = model_->net->params();
  for (const std::vector<float*>& state : model_->optimizer->state_arrays()) {
    for (size_t i = 0; i < state.size(); ++i) {
      if (state[i] == nullptr) continue;
      broadcast_from(model_->state_store().device(), state[i],
                     static_cast<size_t>(params[i]->count()));
    }
  }
  for (const Param* param : tester_->ParamsBeyond(*model_->net)) {
    broadcast(param->weight, static_cast<size_t>(param->count()));
  }
  if (model_->ema) broadcast(model_->ema->numbers().data(), model_->ema->numbers().size());
  RequireEqualWeights(hash);
}

void Solver::RequireEqualWeights(uint32_t own_hash) {
  const std::vector<std::string> hashes = run_->group->Gather(Join(own_hash));
  for (size_t rank = 1; rank < hashes.size(); ++rank) {
    if (hashes[rank] == hashes[0]) continue;
    throw Error(ErrorCode::kProtocol,
                Join("the weights of rank ", rank,
                     " differ from those of rank 0 after rank 0 sent its own: the network between "
                     "them, or the memory of one of them, is faulty"));
  }
}

}  // namespace trainer
