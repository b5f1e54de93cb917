#include "trainer/optim/first_order.h"

#include <utility>

#include "loss_scale.h"
#include "param_updater.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/error/error.h"
#include "trainer/net/f16_gradients.h"
#include "trainer/net/param_store.h"

namespace trainer {

// A copy of a net's parameters in host memory, for an offloaded update. Weights and gradients move
// between the two by blocking copies.
class FirstOrderOptimizer::HostParams {
 public:
  HostParams(const Objective& objective, std::pmr::memory_resource& memory)
      : net_device_(objective.device()),
        device_(MakeCpuDevice()),
        store_(*device_, nullptr, &memory) {
    for (const Param* param : objective.params()) {
      Param copy = *param;
      copy.weight = copy.grad = nullptr;
      params_.push_back(&store_.Add(std::move(copy)));
    }
    store_.Allocate(true);
    for (size_t i = 0; i < params_.size(); ++i) {
      if (params_[i]->grad == nullptr) continue;
      learned_.push_back({objective.params()[i], params_[i], i});
    }
  }

  const Device& device() const { return *device_; }
  const ParamStore& store() const { return store_; }
  // Returns the copies, in the order of the net's parameters.
  const std::vector<Param*>& params() const { return params_; }

  // Copies the net's learned weights to the host.
  void PushWeights() {
    for (const Pair& pair : learned_) {
      net_device_.CopyToHost(pair.host->weight, pair.net->weight, pair.bytes());
    }
  }
  // Copies the host's learned weights to the net.
  void PullWeights() {
    for (const Pair& pair : learned_) {
      net_device_.CopyToDevice(pair.net->weight, pair.host->weight, pair.bytes());
    }
  }
  // Copies the net's gradients to the host: of the parameters that this rank updates, or of all,
  // which a norm of all gradients needs.
  void PushGradients(bool all) {
    for (const Pair& pair : learned_) {
      if (all || pair.own) net_device_.CopyToHost(pair.host->grad, pair.net->grad, pair.bytes());
    }
  }

  // From now on this rank updates only the parameters with own[i].
  void SetOwn(const std::vector<bool>& own) {
    for (Pair& pair : learned_) pair.own = own[pair.index];
  }

 private:
  struct Pair {
    Param *net, *host;
    size_t index;     // in params_
    bool own = true;  // this rank updates it
    size_t bytes() const { return static_cast<size_t>(net->count()) * sizeof(float); }
  };

  const Device& net_device_;
  std::unique_ptr<Device> device_;
  ParamStore store_;
  std::vector<Param*> params_;
  std::vector<Pair> learned_;
};

FirstOrderOptimizer::FirstOrderOptimizer(const SolverSpec& spec, std::unique_ptr<UpdateRule> rule,
                                         std::pmr::memory_resource* host_memory)
    : spec_(spec),
      rule_(std::move(rule)),
      host_memory_(host_memory),
      states_(host_memory == nullptr ? rule_->StatesPerWeight() : 0),
      queue_update_([this] { update_->Queue(); }) {}

FirstOrderOptimizer::FirstOrderOptimizer(const SolverSpec& spec,
                                         std::pmr::memory_resource* host_memory)
    : FirstOrderOptimizer(spec, MakeUpdateRule(spec, OptimizerRegistry::Get().Names()),
                          host_memory) {}

FirstOrderOptimizer::~FirstOrderOptimizer() = default;

void FirstOrderOptimizer::PushWeights() { host_->PushWeights(); }
void FirstOrderOptimizer::PullWeights() { host_->PullWeights(); }

void FirstOrderOptimizer::Prepare(Objective& objective, NoteHandler on_note) {
  objective_ = &objective;
  on_note_ = std::move(on_note);
  const auto scale = LossScaleOf(spec_, HasF16Gradients(objective.net()));
  if (scale && host_memory_ != nullptr) {
    throw Error(
        ErrorCode::kUnavailable, spec_.Where("type"),
        "this solver type updates on the host and cannot scale the loss, but loss_scale or FLOAT16 "
        "gradients need it; remove loss_scale, and store values as FLOAT or BFLOAT16");
  }
  if (host_memory_ == nullptr) {
    update_ = std::make_unique<ParamUpdater>(spec_, std::move(rule_), objective.device(),
                                             objective.params(), objective.Gradients(),
                                             objective.NumRanks(), scale, objective.state_memory());
  } else {
    host_ = std::make_unique<HostParams>(objective, *host_memory_);
    update_ = std::make_unique<ParamUpdater>(spec_, std::move(rule_), host_->device(),
                                             host_->params(), host_->store().Gradients(),
                                             objective.NumRanks(), std::nullopt, host_memory_);
  }
  if (scale) {
    objective.net().ScaleLoss(update_->decision()->loss_scale());
    LetGradientsTellOfNan(objective.net());
  }
  if (host_ || !objective.UpdatesMayWriteAll()) return;
  packed_.emplace(objective.net());
  if (packed_->empty()) return packed_.reset();
  update_->WritePackedWeights(packed_->by_param());
}

// While the passes run, the layers may use the packed weights (PackedWeights::Scope): only the
// update changes weights, and it writes the packed ones, too. They are written here before the
// first step.
void FirstOrderOptimizer::ComputeGradients(const Hyperparams& hyper, bool fused) {
  if (packed_ && !std::exchange(packed_once_, true)) packed_->Write();
  std::optional<PackedWeights::Scope> packed_scope;
  if (packed_) packed_scope.emplace(*packed_);
  fused_ = fused && !host_;
  if (fused_) update_->SetHyperparams(hyper);
  objective_->Run(Pass::Batch::kNext, fused_ ? &queue_update_ : nullptr);
  if (fused_ && update_->ClearsGradients()) objective_->GradientsAreZero();
}

void FirstOrderOptimizer::Update(const Hyperparams& hyper) {
  if (std::exchange(fused_, false)) return update_->Queued(hyper.iter);
  update_->SetRanks(objective_->NumRanks());
  const bool in_ranges = update_->AppliesInRanges();
  if (host_ || !in_ranges) objective_->Gradients();  // waits for all sums
  if (host_) host_->PushGradients(/*all=*/!in_ranges);
  const auto total = [&](float squares) { return objective_->SumOverStages(squares); };
  update_->Begin(hyper, objective_->IsStage() ? total : std::function<float(float)>());
  if (host_) return update_->Apply(host_->store().Gradients());
  for (int i = 0, next = 0; i < objective_->NumRanges(); i = next) {
    update_->Apply(objective_->NextReduced(i, &next));
  }
  if (update_->ClearsGradients()) objective_->GradientsAreZero();
}

void FirstOrderOptimizer::EmitNotes(bool wait) {
  if (wait || host_ || !objective_->device().IsAsync()) on_note_(update_->TakeNote());
}

bool FirstOrderOptimizer::UpdateOnly(const std::vector<bool>& own, bool unscaled) {
  if (unscaled && LossScale()) update_->decision()->EndScaling();
  if (host_) host_->SetOwn(own);
  update_->UpdateOnly(own);
  return true;
}

bool FirstOrderOptimizer::FuseEma(const std::vector<float*>& averages, float decay) {
  if (host_) return false;
  update_->FuseEma(averages, decay);
  return true;
}

std::optional<LossScaleState> FirstOrderOptimizer::LossScale() {
  LossScaler* const scaler = update_->decision();
  if (scaler == nullptr || scaler->loss_scale() == nullptr) return std::nullopt;
  return scaler->State();
}

void FirstOrderOptimizer::RestoreLossScale(const LossScaleState& state) {
  if (LossScale()) update_->decision()->Restore(state);
}

const std::vector<std::vector<float*>>& FirstOrderOptimizer::state_arrays() const {
  return update_->state_arrays();
}

size_t FirstOrderOptimizer::Bytes() const { return update_->Bytes(); }

const ParamStore* FirstOrderOptimizer::state_store() const {
  return host_ ? &host_->store() : nullptr;
}

}  // namespace trainer
