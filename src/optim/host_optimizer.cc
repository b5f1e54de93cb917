#include "trainer/optim/host_optimizer.h"

#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/net/f16_gradients.h"
#include "trainer/optim/loss_scale.h"

namespace trainer {

HostOptimizer::HostOptimizer(const SolverSpec& spec, std::unique_ptr<UpdateRule> rule,
                             std::pmr::memory_resource& memory)
    : spec_(spec), rule_(std::move(rule)), memory_(memory) {}

void HostOptimizer::Prepare(Objective& objective, NoteHandler on_note) {
  objective_ = &objective;
  on_note_ = std::move(on_note);
  if (LossScaleOf(spec_, HasF16Gradients(objective.net()))) {
    throw Error(
        ErrorCode::kUnavailable, spec_.Where("type"),
        "this solver type updates on the host and cannot scale the loss, but loss_scale or FLOAT16 "
        "gradients need it; remove loss_scale, and store values as FLOAT or BFLOAT16");
  }
  net_device_ = &objective.device();
  host_ = MakeCpuDevice();
  store_.emplace(*host_, nullptr, &memory_);
  for (const Param* param : objective.params()) {
    Param copy = *param;
    copy.weight = copy.grad = nullptr;
    params_.push_back(&store_->Add(std::move(copy)));
  }
  store_->Allocate(true);
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i]->grad == nullptr) continue;
    learned_.push_back({objective.params()[i], params_[i], i});
  }
  update_.emplace(spec_, std::move(rule_), *host_, params_, store_->Gradients(),
                  objective.NumRanks(), std::nullopt, &memory_);
}

void HostOptimizer::PushWeights() {
  for (const Pair& pair : learned_) {
    net_device_->CopyToHost(pair.host->weight, pair.net->weight,
                            static_cast<size_t>(pair.net->count()) * sizeof(float));
  }
}

void HostOptimizer::PullWeights() {
  for (const Pair& pair : learned_) {
    net_device_->CopyToDevice(pair.net->weight, pair.host->weight,
                              static_cast<size_t>(pair.net->count()) * sizeof(float));
  }
}

// What all gradients decide, a clip, needs those of the other ranks' share, too.
void HostOptimizer::Update(const Hyperparams& hyper) {
  objective_->Gradients();  // waits for all sums
  for (const Pair& pair : learned_) {
    if (!pair.own && update_->AppliesInRanges()) continue;
    net_device_->CopyToHost(pair.host->grad, pair.net->grad,
                            static_cast<size_t>(pair.net->count()) * sizeof(float));
  }
  update_->SetRanks(objective_->NumRanks());
  update_->Begin(hyper);
  update_->Apply(store_->Gradients());
}

bool HostOptimizer::UpdateOnly(const std::vector<bool>& own, bool) {
  for (Pair& pair : learned_) pair.own = own[pair.number];
  update_->UpdateOnly(own);
  return true;
}

}  // namespace trainer
