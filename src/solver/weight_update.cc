#include "trainer/solver/weight_update.h"

#include <algorithm>
#include <utility>

#include "trainer/base/text.h"
#include "trainer/rules/clip.h"
#include "trainer/solver/lr_policy.h"

namespace trainer {

WeightUpdate::WeightUpdate(const SolverSpec& spec, std::unique_ptr<Rule> rule, const Device& device,
                           const std::vector<Param*>& params, std::span<float> gradients)
    : proto_(spec.proto),
      rule_(std::move(rule)),
      device_(device),
      params_(params),
      gradients_(gradients) {
  norm_ = Allocate(1);
  int64_t count = 0;
  for (const Param* param : params_) count += param->count();
  for (int kind = 0; kind < rule_->StatesPerWeight(); ++kind) {
    float* next = Allocate(static_cast<size_t>(count));
    std::vector<float*>& history = history_.emplace_back();
    for (const Param* param : params_) {
      history.push_back(next);
      next += param->count();
    }
  }
}

float* WeightUpdate::Allocate(size_t floats) {
  const size_t bytes = floats * sizeof(float);
  void* block = blocks_.emplace_back(device_.Allocate(bytes), FreeOnDevice{&device_}).get();
  device_.Zero(block, bytes);
  return static_cast<float*>(block);
}

std::string WeightUpdate::Apply(int iter, float rate) {
  const bool l1 = proto_.regularization_type() == "L1";
  const bool needs_norms = proto_.larc() || rule_->NeedsNorms();
  const float weight_decay = WeightDecay(proto_, iter);
  std::string note;
  ParamSlice slice;
  slice.grad_scale = ClipFactor(&note) / static_cast<float>(proto_.iter_size());
  slice.iter = iter;
  slice.clear_grad = !proto_.snapshot_diff();  // else the gradients stay for the snapshot
  slice.momentum = Momentum(proto_, iter, rate);
  for (size_t i = 0; i < params_.size(); ++i) {
    const Param& param = *params_[i];
    if (param.grad == nullptr) continue;
    const float decay = weight_decay * param.decay_mult;
    slice.count = param.count();
    slice.weight = param.weight;
    slice.grad = param.grad;
    slice.decays = param.decay_mult != 0;
    slice.decay_l1 = l1 ? decay : 0;
    slice.decay_l2 = l1 ? 0 : decay;
    for (size_t kind = 0; kind < history_.size(); ++kind) slice.state[kind] = history_[kind][i];
    if (needs_norms) {
      const auto count = static_cast<size_t>(slice.count);
      slice.weight_norm = Norm({param.weight, count});
      slice.grad_norm = slice.grad_scale * Norm({param.grad, count});
    }
    slice.rate = LocalRate(slice, rate, param.lr_mult);
    rule_->Step(device_, slice);
  }
  return note;
}

size_t WeightUpdate::Bytes() const {
  int64_t count = 0;
  for (const Param* param : params_) count += param->grad == nullptr ? 0 : param->count();
  return static_cast<size_t>(count) * 2 * sizeof(float) * (2 + history_.size());
}

// A norm that is not a number clips nothing, as in Caffe.
float WeightUpdate::ClipFactor(std::string* note) {
  const float limit = proto_.clip_gradients();
  if (limit < 0) return 1;
  const float norm = Norm(gradients_);
  if (!(norm > limit)) return 1;
  const float factor = limit / norm;
  *note = Join("Gradient clipping: scaling down gradients (L2 norm ", norm, " > ", limit,
               ") by scale factor ", factor);
  return factor;
}

// NVIDIA Caffe's larc: local = (1 - momentum) * larc_eta * |w| / |g|, or 1 where a norm is 0, takes
// the place of a positive lr_mult; the rate is then rate * local (scale) or the lesser of both
// (clip). g is the averaged and clipped gradient without decay.
// Source: Ginsburg, Gitman and You, "Large batch training of convolutional networks with layer-wise
// adaptive rate scaling", 2018.
float WeightUpdate::LocalRate(const ParamSlice& slice, float rate, float lr_mult) const {
  if (!proto_.larc()) return rate * lr_mult;
  float local = lr_mult;
  if (lr_mult > 0) {
    const bool known = slice.weight_norm > 0 && slice.grad_norm > 0;
    local =
        known ? (1 - slice.momentum) * proto_.larc_eta() * slice.weight_norm / slice.grad_norm : 1;
  }
  return proto_.larc_policy() == "clip" ? std::min(rate, local) : rate * local;
}

float WeightUpdate::Norm(std::span<const float> values) const {
  return L2Norm(device_, values, norm_);
}

}  // namespace trainer
