// Broadcasts rank 0's weights and optimizer state, so that all ranks start from the same ones.

#include <algorithm>

#include "solver_context.h"
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
  broadcast(params_.Weights().data(), params_.Weights().size());
  if (params_.weight_memory() != nullptr) {
    broadcast(params_.RunningStats().data(), params_.RunningStats().size());
  }
  const std::vector<Param*>& params = train_net_->params();
  for (const std::vector<float*>& state : optimizer_->state_arrays()) {
    for (size_t i = 0; i < state.size(); ++i) {
      if (state[i] == nullptr) continue;
      broadcast_from(StateStore(*optimizer_, params_).device(), state[i],
                     static_cast<size_t>(params[i]->count()));
    }
  }
  for (const Param* param : ParamsOfTests()) {
    broadcast(param->weight, static_cast<size_t>(param->count()));
  }
  if (ema_) broadcast(ema_->numbers().data(), ema_->numbers().size());
  RequireEqualWeights(hash);
}

// Returns the parameters of the shared test nets that the training net does not have.
std::vector<Param*> Solver::ParamsOfTests() const {
  std::vector<Param*> params;
  for (size_t i = 0; i < test_nets_.size(); ++i) {
    if (!shared_tests_[i]) continue;
    for (Param* param : test_nets_[i]->params()) {
      const bool known =
          std::ranges::find(train_net_->params(), param) != train_net_->params().end() ||
          std::ranges::find(params, param) != params.end();
      if (!known) params.push_back(param);
    }
  }
  return params;
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
