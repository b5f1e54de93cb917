#include "trainer/steps/weight_update.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "trainer/rules/average.h"
#include "trainer/rules/clip.h"
#include "trainer/rules/decide.h"

namespace trainer {
namespace {

constexpr size_t kRateFloats = sizeof(RateWords) / sizeof(float);
static_assert(sizeof(RateWords) % sizeof(float) == 0);

Larc LarcOf(const caffe::SolverParameter& proto) {
  if (!proto.larc()) return Larc::kNone;
  return proto.larc_policy() == "clip" ? Larc::kClip : Larc::kScale;
}

}  // namespace

WeightUpdate::WeightUpdate(const SolverSpec& spec, std::unique_ptr<Rule> rule, const Device& device,
                           const std::vector<Param*>& params, std::span<float> gradients,
                           int replicas, const std::optional<LossScaleOptions>& scale,
                           std::pmr::memory_resource* memory)
    : proto_(spec.proto),
      rule_(std::move(rule)),
      device_(device),
      gradients_(gradients),
      replicas_(replicas),
      squares_(device, 1),
      now_(device, kRateFloats) {
  numbers_.now = reinterpret_cast<RateWords*>(now_.data());
  MakeStates(params, memory);
  ListParameters(params);
  if (proto_.clip_gradients() >= 0 || scale) {
    decision_.emplace(device_, proto_.clip_gradients(), scale);
    numbers_.words = decision_->words();
  }
  if (NeedsNorms()) {
    const auto count = static_cast<size_t>(parameters_->size());
    numbers_.grad_squares = grad_squares_.emplace(device, count).data();
    numbers_.weight_squares = weight_squares_.emplace(device, count).data();
  }
  numbers_.l1 = proto_.regularization_type() == "L1";
  numbers_.clear_grad = ClearsGradients();
  numbers_.larc = LarcOf(proto_);
  numbers_.larc_eta = proto_.larc_eta();
}

// Each parameter's begins at a line of the caches.
void WeightUpdate::MakeStates(const std::vector<Param*>& params,
                              std::pmr::memory_resource* memory) {
  int64_t count = 0;
  for (const Param* param : params) count += ParamStore::PaddedCount(param->count());
  for (int kind = 0; kind < rule_->StatesPerWeight(); ++kind) {
    float* next = states_.emplace_back(device_, static_cast<size_t>(count), memory).data();
    std::vector<float*>& history = history_.emplace_back();
    for (const Param* param : params) {
      history.push_back(next);
      next += ParamStore::PaddedCount(param->count());
    }
  }
}

void WeightUpdate::ListParameters(const std::vector<Param*>& params) {
  std::vector<size_t>& learned = numbers_of_;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i]->grad != nullptr) learned.push_back(i);
  }
  std::ranges::sort(learned, std::less<const float*>(),
                    [&](size_t number) { return params[number]->grad; });
  params_ = params;
  ListSegments();
  std::vector<ParamMults> mults;
  for (const size_t number : learned) {
    mults.push_back({params[number]->lr_mult, params[number]->decay_mult});
  }
  mults_.emplace(device_, 2 * mults.size());
  static_assert(sizeof(ParamMults) == 2 * sizeof(float));
  device_.CopyToDevice(mults_->data(), mults.data(), mults.size() * sizeof(ParamMults));
  numbers_.mults = reinterpret_cast<const ParamMults*>(mults_->data());
}

void WeightUpdate::ListSegments() {
  std::vector<TensorTuple> segments;
  for (const size_t number : numbers_of_) {
    const Param& param = *params_[number];
    TensorTuple& segment =
        segments.emplace_back(TensorTuple{param.count(), {param.weight, param.grad}});
    float** next = segment.array + 2;
    if (!averages_.empty()) *next++ = averages_[number];
    for (const std::vector<float*>& state : history_) *next++ = state[number];
  }
  parameters_.emplace(device_, std::move(segments));
}

void WeightUpdate::KeepAverages(const std::vector<float*>& averages, float decay) {
  averages_ = averages;
  decay_ = decay;
  numbers_.averages = true;
  ListSegments();
}

void WeightUpdate::WriteCopies(const std::vector<PackedWeight>& copies) {
  std::vector<PackedWeight> learned;
  for (const size_t number : numbers_of_) learned.push_back(copies[number]);
  copies_.emplace(device_, learned);
  numbers_.copies = copies_->data();
}

void WeightUpdate::SetShare(const std::vector<bool>& own) {
  others_.clear();
  for (const size_t number : numbers_of_) others_.push_back(!own[number]);
}

void WeightUpdate::Begin(const UpdateRates& rates, const std::function<float(float)>& total) {
  numbers_.passes = static_cast<float>(proto_.iter_size() * replicas_);
  SetRates(rates);
  Decide(total);
  Queued(rates.iter);
}

// Only what the update reads: where that is what the one before read nothing is written.
void WeightUpdate::SetRates(const UpdateRates& rates) {
  RateWords now{.rates = rates, .keep = 0};
  if (!averages_.empty()) now.keep = AverageKeeps(decay_, rates.iter + 1);
  if (!rule_->CountsUpdates()) now.rates.iter = 0;
  if (now.rates == sent_.rates && now.keep == sent_.keep) return;
  sent_ = now;
  WriteRates(device_, now, numbers_.now);
}

void WeightUpdate::Decide(const std::function<float(float)>& total) {
  if (decision_) {
    SumOfSquares(device_, gradients_, squares_.data());
    if (total) AddOtherSquares(total);
    if (NeedsNorms()) SumSquares(0, parameters_->size());
    decision_->Decide(squares_.data(), replicas_);
  }
  rule_->Begin(device_, numbers_);
}

void WeightUpdate::Queue() {
  numbers_.passes = static_cast<float>(proto_.iter_size() * replicas_);
  Decide({});
  Apply(gradients_);
}

void WeightUpdate::Queued(int iter) {
  if (decision_) decision_->Read(iter);
}

void WeightUpdate::AddOtherSquares(const std::function<float(float)>& total) {
  float squares = 0;
  device_.CopyToHost(&squares, squares_.data(), sizeof(squares));
  squares = total(squares);
  device_.CopyToDevice(squares_.data(), &squares, sizeof(squares));
}

std::string WeightUpdate::Apply(const UpdateRates& rates) {
  Begin(rates);
  Apply(gradients_);
  return TakeNote();
}

void WeightUpdate::Apply(std::span<const float> range) {
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
  if (!others_.empty()) return ApplyShare(first, last);
  if (!NeedsNorms() || decision_) return Step(first, last);
  if (device_.IsAsync()) {
    SumSquares(first, last);
    return Step(first, last);
  }
  // What the norms were taken of is in the caches for its step.
  for (int i = last; i-- > first;) {
    SumSquares(i, i + 1);
    Step(i, i + 1);
  }
}

void WeightUpdate::ApplyShare(int first, int last) {
  for (int i = last; i-- > first;) {
    if (!others_[static_cast<size_t>(i)]) {
      if (NeedsNorms() && !decision_) SumSquares(i, i + 1);
      Step(i, i + 1);
    } else if (ClearsGradients()) {
      const TensorTuple& other = (*parameters_)[i];
      device_.Zero(other.array[1], static_cast<size_t>(other.count) * sizeof(float));
    }
  }
}

void WeightUpdate::SumSquares(int first, int last) {
  trainer::SumSquares(device_, *parameters_, first, last, grad_squares_->data(),
                      weight_squares_->data());
}

void WeightUpdate::Step(int first, int last) {
  rule_->Step(device_, UpdatePart{*parameters_, first, last, numbers_});
}

size_t WeightUpdate::Bytes() const {
  int64_t count = 0;
  for (int i = 0; i < parameters_->size(); ++i) count += (*parameters_)[i].count;
  return static_cast<size_t>(count) * 2 * sizeof(float) * (2 + history_.size());
}

}  // namespace trainer
