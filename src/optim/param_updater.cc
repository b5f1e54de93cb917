#include "param_updater.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "gradient_stats.h"
#include "gradient_verdict.h"
#include "trainer/optim/ema.h"
#include "value_clip.h"

namespace trainer {
namespace {

constexpr size_t kRateFloats = sizeof(DeviceHyperparams) / sizeof(float);
static_assert(sizeof(DeviceHyperparams) % sizeof(float) == 0);

// Returns the mode of larc that the solver's larc and larc_policy set.
Larc LarcOf(const caffe::SolverParameter& proto) {
  if (!proto.larc()) return Larc::kNone;
  return proto.larc_policy() == "clip" ? Larc::kClip : Larc::kScale;
}

}  // namespace

ParamUpdater::ParamUpdater(const SolverSpec& spec, std::unique_ptr<UpdateRule> rule,
                           const Device& device, const std::vector<Param*>& params,
                           std::span<float> gradients, int ranks,
                           const std::optional<LossScaleOptions>& scale,
                           std::pmr::memory_resource* memory)
    : proto_(spec.proto),
      rule_(std::move(rule)),
      device_(device),
      gradients_(gradients),
      ranks_(ranks),
      squares_(device, 1),
      device_hyper_(device, kRateFloats) {
  args_.hyper = reinterpret_cast<DeviceHyperparams*>(device_hyper_.data());
  MakeStates(params, memory);
  ListParameters(params);
  if (proto_.clip_gradients() >= 0 || scale) {
    decision_.emplace(device_, proto_.clip_gradients(), scale);
    args_.verdict = decision_->verdict();
  }
  if (NeedsNorms()) {
    const auto count = static_cast<size_t>(parameters_->size());
    args_.grad_squares = grad_squares_.emplace(device, count).data();
    args_.weight_squares = weight_squares_.emplace(device, count).data();
  }
  args_.l1 = proto_.regularization_type() == "L1";
  args_.clear_grad = ClearsGradients();
  args_.larc = LarcOf(proto_);
  args_.larc_eta = proto_.larc_eta();
}

// The state of each parameter is padded (PaddedCount), so that it begins on a new cache line.
void ParamUpdater::MakeStates(const std::vector<Param*>& params,
                              std::pmr::memory_resource* memory) {
  int64_t count = 0;
  for (const Param* param : params) count += ParamStore::PaddedCount(param->count());
  for (int kind = 0; kind < rule_->StatesPerWeight(); ++kind) {
    float* next = states_.emplace_back(device_, static_cast<size_t>(count), memory).data();
    std::vector<float*>& history = state_arrays_.emplace_back();
    for (const Param* param : params) {
      history.push_back(next);
      next += ParamStore::PaddedCount(param->count());
    }
  }
}

void ParamUpdater::ListParameters(const std::vector<Param*>& params) {
  std::vector<size_t>& learned = numbers_of_;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i]->grad != nullptr) learned.push_back(i);
  }
  std::ranges::sort(learned, std::less<const float*>(),
                    [&](size_t number) { return params[number]->grad; });
  params_ = params;
  ListSegments();
  std::vector<ParamMultipliers> multipliers;
  for (const size_t number : learned) {
    const int group = params[number]->was_frozen ? 1 : 0;
    args_.groups = std::max(args_.groups, group + 1);
    multipliers.push_back({params[number]->lr_mult, params[number]->decay_mult, group});
  }
  args_.unfreeze_at = proto_.unfreeze_at();
  constexpr size_t kFloats = sizeof(ParamMultipliers) / sizeof(float);
  static_assert(sizeof(ParamMultipliers) == kFloats * sizeof(float));
  multipliers_.emplace(device_, kFloats * multipliers.size());
  device_.CopyToDevice(multipliers_->data(), multipliers.data(),
                       multipliers.size() * sizeof(ParamMultipliers));
  args_.multipliers = reinterpret_cast<const ParamMultipliers*>(multipliers_->data());
}

void ParamUpdater::ListSegments() {
  std::vector<TensorTuple> segments;
  for (const size_t number : numbers_of_) {
    const Param& param = *params_[number];
    TensorTuple& segment =
        segments.emplace_back(TensorTuple{param.count(), {param.weight, param.grad}});
    float** next = segment.array + 2;
    if (!ema_.empty()) *next++ = ema_[number];
    for (const std::vector<float*>& state : state_arrays_) *next++ = state[number];
  }
  parameters_.emplace(device_, std::move(segments));
}

void ParamUpdater::FuseEma(const std::vector<float*>& ema, float decay) {
  ema_ = ema;
  decay_ = decay;
  args_.ema = true;
  ListSegments();
}

void ParamUpdater::WritePackedWeights(const std::vector<PackedWeight>& copies) {
  std::vector<PackedWeight> learned;
  for (const size_t number : numbers_of_) learned.push_back(copies[number]);
  copies_.emplace(device_, learned);
  args_.copies = copies_->data();
}

void ParamUpdater::UpdateOnly(const std::vector<bool>& own) {
  others_.clear();
  for (const size_t number : numbers_of_) others_.push_back(!own[number]);
}

void ParamUpdater::Begin(const Hyperparams& hyper, const std::function<float(float)>& total) {
  args_.passes = static_cast<float>(proto_.iter_size() * ranks_);
  SetHyperparams(hyper);
  Decide(total);
  Queued(hyper.iter);
}

// Writes only what the update reads, and nothing if that has not changed since the last update.
void ParamUpdater::SetHyperparams(const Hyperparams& hyper) {
  DeviceHyperparams now{.values = hyper, .ema_keep = 0};
  if (!ema_.empty()) now.ema_keep = EmaKeep(decay_, hyper.iter + 1);
  if (!rule_->CountsUpdates()) now.values.iter = 0;
  if (now.values == sent_.values && now.ema_keep == sent_.ema_keep) return;
  sent_ = now;
  WriteHyperparams(device_, now, args_.hyper);
}

void ParamUpdater::Decide(const std::function<float(float)>& total) {
  if (decision_) {
    SumOfSquares(device_, gradients_, squares_.data());
    if (total) AddOtherSquares(total);
    decision_->Decide(squares_.data(), ranks_);
    Clip(gradients_);
    if (NeedsNorms()) SumSquares(0, parameters_->size());
  }
  rule_->Begin(device_, args_);
}

void ParamUpdater::Clip(std::span<float> gradients) {
  if (proto_.clip_value() < 0) return;
  ClipValues(device_, gradients, proto_.clip_value(), args_.passes, args_.verdict);
}

void ParamUpdater::Queue() {
  args_.passes = static_cast<float>(proto_.iter_size() * ranks_);
  Decide({});
  Apply(gradients_);
}

void ParamUpdater::Queued(int iter) {
  if (decision_) decision_->Read(iter);
}

void ParamUpdater::AddOtherSquares(const std::function<float(float)>& total) {
  float squares = 0;
  device_.CopyToHost(&squares, squares_.data(), sizeof(squares));
  squares = total(squares);
  device_.CopyToDevice(squares_.data(), &squares, sizeof(squares));
}

std::string ParamUpdater::Apply(const Hyperparams& hyper) {
  Begin(hyper);
  Apply(gradients_);
  return TakeNote();
}

void ParamUpdater::Apply(std::span<const float> range) {
  const auto parameter_at = [&](const float* gradient) {
    int first = 0, last = parameters_->size();
    while (first < last) {
      const int middle = (first + last) / 2;
      const bool before = std::less<const float*>()((*parameters_)[middle].array[1], gradient);
      (before ? first : last) = before ? middle + 1 : middle;
    }
    return first;
  };
  const int first = parameter_at(range.data()), last = parameter_at(range.data() + range.size());
  if (!decision_) {
    Clip(gradients_.subspan(static_cast<size_t>(range.data() - gradients_.data()), range.size()));
  }
  if (!others_.empty()) return ApplyOwn(first, last);
  if (!NeedsNorms() || decision_) return StepRange(first, last);
  if (device_.IsAsync()) {
    SumSquares(first, last);
    return StepRange(first, last);
  }
  // Each parameter is updated right after its norms are computed, while it is still in the caches.
  for (int i = last; i-- > first;) {
    SumSquares(i, i + 1);
    StepRange(i, i + 1);
  }
}

void ParamUpdater::ApplyOwn(int first, int last) {
  for (int i = last; i-- > first;) {
    if (!others_[static_cast<size_t>(i)]) {
      if (NeedsNorms() && !decision_) SumSquares(i, i + 1);
      StepRange(i, i + 1);
    } else if (ClearsGradients()) {
      const TensorTuple& other = (*parameters_)[i];
      device_.Zero(other.array[1], static_cast<size_t>(other.count) * sizeof(float));
    }
  }
}

void ParamUpdater::SumSquares(int first, int last) {
  SumSquaresPerParam(device_, *parameters_, first, last, grad_squares_->data(),
                     weight_squares_->data());
}

void ParamUpdater::StepRange(int first, int last) {
  rule_->Step(device_, UpdateRange{*parameters_, first, last, args_});
}

size_t ParamUpdater::Bytes() const {
  int64_t count = 0;
  for (int i = 0; i < parameters_->size(); ++i) count += (*parameters_)[i].count;
  return static_cast<size_t>(count) * 2 * sizeof(float) * (2 + state_arrays_.size());
}

}  // namespace trainer
