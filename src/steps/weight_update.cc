#include "trainer/steps/weight_update.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "trainer/base/text.h"
#include "trainer/rules/clip.h"

namespace trainer {
namespace {

size_t CountOf(const std::vector<Param*>& params) {
  int64_t count = 0;
  for (const Param* param : params) count += param->count();
  return static_cast<size_t>(count);
}

}  // namespace

WeightUpdate::WeightUpdate(const SolverSpec& spec, std::unique_ptr<Rule> rule, const Device& device,
                           const std::vector<Param*>& params, std::span<float> gradients,
                           int replicas, std::pmr::memory_resource* memory)
    : proto_(spec.proto),
      rule_(std::move(rule)),
      device_(device),
      gradients_(gradients),
      replicas_(replicas),
      squares_(device, 2 * params.size() + 1),
      host_squares_(squares_.size()) {
  for (int kind = 0; kind < rule_->StatesPerWeight(); ++kind) {
    float* next = states_.emplace_back(device, CountOf(params), memory).data();
    std::vector<float*>& history = history_.emplace_back();
    for (const Param* param : params) {
      history.push_back(next);
      next += param->count();
    }
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i]->grad != nullptr) entries_.push_back({params[i], i});
  }
  std::ranges::sort(entries_, std::less<const float*>(),
                    [](const Entry& entry) { return entry.param->grad; });
}

void WeightUpdate::SetShare(const std::vector<bool>& own) {
  others_.clear();
  for (const Entry& entry : entries_) others_.push_back(!own[entry.number]);
}

std::string WeightUpdate::Begin(const UpdateRates& rates,
                                const std::function<float(float)>& total) {
  rates_ = rates;
  std::string note;
  clip_ = ClipFactor(total, &note);
  return note;
}

std::string WeightUpdate::Apply(const UpdateRates& rates) {
  std::string note = Begin(rates);
  Apply(gradients_);
  return note;
}

// From the last in memory to the first: the gradients that backward finished last are still in the
// caches.
void WeightUpdate::Apply(std::span<const float> range) {
  const auto entry_at = [&](const float* gradient) {
    const auto found = std::ranges::lower_bound(entries_, gradient, std::less<const float*>(),
                                                [](const Entry& e) { return e.param->grad; });
    return static_cast<size_t>(found - entries_.begin());
  };
  const size_t first = entry_at(range.data()), last = entry_at(range.data() + range.size());
  if (ReadsTogether() && AppliesInRanges()) {
    SumSquares(first, last);
    ReadSquares(2 * first, 2 * last);
  }
  for (size_t i = last; i-- > first;) {
    if (!others_.empty() && others_[i]) {
      LeaveToOthers(i);
      continue;
    }
    if (NeedsNorms() && !ReadsTogether()) {
      SumSquares(i, i + 1);
      ReadSquares(2 * i, 2 * i + 2);
    }
    Step(i);
  }
}

// The norms of a device that runs later are read together, since each read waits for all that is
// queued; of another parameter by parameter, which leaves each in the caches for its step.
void WeightUpdate::SumSquares(size_t first, size_t last) {
  for (size_t i = first; i < last; ++i) {
    const Param& param = *entries_[i].param;
    const auto count = static_cast<size_t>(param.count());
    SumOfSquares(device_, {param.weight, count}, squares_.data() + 2 * i);
    SumOfSquares(device_, {param.grad, count}, squares_.data() + 2 * i + 1);
  }
}

void WeightUpdate::ReadSquares(size_t first, size_t last) {
  device_.CopyToHost(&host_squares_[first], squares_.data() + first,
                     (last - first) * sizeof(float));
}

void WeightUpdate::LeaveToOthers(size_t entry) {
  const Param& param = *entries_[entry].param;
  if (ClearsGradients()) {
    device_.Zero(param.grad, static_cast<size_t>(param.count()) * sizeof(float));
  }
}

void WeightUpdate::Step(size_t entry) {
  const auto [param, number] = entries_[entry];
  const bool l1 = proto_.regularization_type() == "L1";
  const float decay = rates_.weight_decay * param->decay_mult;
  ParamSlice slice;
  slice.count = param->count();
  slice.weight = param->weight;
  slice.grad = param->grad;
  for (size_t kind = 0; kind < history_.size(); ++kind) slice.state[kind] = history_[kind][number];
  slice.iter = rates_.iter;
  slice.momentum = rates_.momentum;
  slice.grad_scale = clip_ / static_cast<float>(proto_.iter_size() * replicas_);
  slice.clear_grad = ClearsGradients();
  slice.decays = param->decay_mult != 0;
  slice.decay_l1 = l1 ? decay : 0;
  slice.decay_l2 = l1 ? 0 : decay;
  if (NeedsNorms()) {
    slice.weight_norm = std::sqrt(host_squares_[2 * entry]);
    slice.grad_norm = slice.grad_scale * std::sqrt(host_squares_[2 * entry + 1]);
  }
  slice.rate = LocalRate(slice, param->lr_mult);
  rule_->Step(device_, slice);
}

size_t WeightUpdate::Bytes() const {
  int64_t count = 0;
  for (const Entry& entry : entries_) count += entry.param->count();
  return static_cast<size_t>(count) * 2 * sizeof(float) * (2 + history_.size());
}

// Of the mean over the replicas, as if they were one with a larger batch. A norm that is not a
// number clips nothing, as in Caffe.
float WeightUpdate::ClipFactor(const std::function<float(float)>& total, std::string* note) {
  const float limit = proto_.clip_gradients();
  if (limit < 0) return 1;
  const size_t all = 2 * entries_.size();
  SumOfSquares(device_, gradients_, squares_.data() + all);
  if (ReadsTogether()) SumSquares(0, entries_.size());
  ReadSquares(ReadsTogether() ? 0 : all, all + 1);
  const float squares = total ? total(host_squares_[all]) : host_squares_[all];
  const float norm = std::sqrt(squares) / static_cast<float>(replicas_);
  if (!(norm > limit)) return 1;
  const float factor = limit / norm;
  *note = Join("Gradient clipping: scaling down gradients (L2 norm ", norm, " > ", limit,
               ") by scale factor ", factor);
  return factor;
}

// NVIDIA Caffe's larc: local = (1 - momentum) * larc_eta * |w| / |g|, or 1 where a norm is 0, takes
// the factor of a positive lr_mult; the rate is then rate * local (scale) or the lesser of both
// (clip). g is the averaged and clipped gradient without decay.
// Source: Ginsburg, Gitman and You, "Large batch training of convolutional networks with layer-wise
// adaptive rate scaling", 2018.
float WeightUpdate::LocalRate(const ParamSlice& slice, float lr_mult) const {
  if (!proto_.larc()) return rates_.rate * lr_mult;
  float local = lr_mult;
  if (lr_mult > 0) {
    const bool known = slice.weight_norm > 0 && slice.grad_norm > 0;
    local =
        known ? (1 - slice.momentum) * proto_.larc_eta() * slice.weight_norm / slice.grad_norm : 1;
  }
  return proto_.larc_policy() == "clip" ? std::min(rates_.rate, local) : rates_.rate * local;
}

}  // namespace trainer
