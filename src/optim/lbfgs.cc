#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "line_search.h"
#include "loss_scale.h"
#include "retry_loss_scaler.h"
#include "trainer/backend/loops/map.h"
#include "trainer/backend/loops/reduce.h"
#include "trainer/base/text/text.h"
#include "trainer/net/f16_gradients.h"
#include "trainer/net/passes_identical.h"
#include "trainer/optim/optimizer.h"
#include "update_rule.h"

namespace trainer {
namespace {

// Returns term i of the dot product of a and b.
struct Product {
  const float *a, *b;
  HD float operator()(int64_t i) const { return a[i] * b[i]; }
};

// Returns |a_i - b_i|, a term of the distance of two weight vectors; NaN counts as different.
struct Distance {
  const float *a, *b;
  HD float operator()(int64_t i) const { return fabsf(a[i] - b[i]); }
};

// Adds factor * x to an element.
struct AddScaled {
  float factor;
  HD void operator()(float& to, float x) const { to += factor * x; }
};

// Multiplies an element by the factor.
struct Scale {
  float factor;
  HD void operator()(float& x) const { x *= factor; }
};

// Sets an element of the weights to from + step * direction.
struct StepAlong {
  float step;
  HD void operator()(float& to, float from, float direction) const { to = from + step * direction; }
};

// Sets an element to a - b.
struct Subtract {
  HD void operator()(float& to, float a, float b) const { to = a - b; }
};

// Limited-memory BFGS. The search direction is d = -H g, where the two-loop recursion computes H,
// an approximation of the inverse Hessian, from the last pairs of steps s and gradient changes y
// and from the initial gamma I, gamma = s y / y y of the newest pair. A line search along d
// follows. The loss is computed on the same batch in all evaluations of a step, plus weight_decay
// |w|^2 / 2. If all passes are identical, a step starts from the loss and gradient that the last
// one found, without an evaluation. Source: Nocedal and Wright, "Numerical Optimization",
// algorithms 7.4 and 7.5; for the first step length and the choice of pairs, Byrd, Lu, Nocedal and
// Zhu, SIAM Journal on Scientific Computing 16, 1995.
class Lbfgs final : public Optimizer {
 public:
  // Throws kConfig for lbfgs_param out of range, and for a momentum, L1, clip_gradients or
  // clip_value, which L-BFGS cannot use.
  explicit Lbfgs(const SolverSpec& spec) : spec_(spec), param_(spec.proto.lbfgs_param()) {
    RefuseMomentum(spec, "LBFGS");
    RefuseL1(spec, "LBFGS");
    const auto fail = [&](const auto&... text) {
      spec.Fail("lbfgs_param", Join("lbfgs_param: ", text...));
    };
    if (param_.history() < 1 || param_.history() > kMostPairs) {
      fail("history is ", param_.history(), "; it must be 1 to ", kMostPairs, " pairs");
    }
    if (param_.max_evaluations() < 1) {
      fail("max_evaluations is ", param_.max_evaluations(), "; it must be at least 1");
    }
    if (!(param_.c1() > 0 && param_.c1() < param_.c2() && param_.c2() < 1)) {
      fail("c1 is ", param_.c1(), " and c2 ", param_.c2(), "; it must be 0 < c1 < c2 < 1");
    }
    const bool by_norm = spec.proto.clip_gradients() >= 0;
    if (by_norm || spec.proto.clip_value() >= 0) {
      const char* const field = by_norm ? "clip_gradients" : "clip_value";
      spec.Fail(field, Join(field,
                            " is given, but LBFGS needs the unchanged gradient of the loss; "
                            "remove the line"));
    }
  }

  // Zero, because the arrays are in the optimizer's own record: a snapshot then need not store
  // state for weights that are not learned.
  int StatesPerWeight() const override { return 0; }
  // Two arrays per pair, and the direction, the weights and the gradient of the step's start.
  int ExtraArrays() const override { return 2 * param_.history() + 3; }
  bool Reevaluates() const override { return true; }

  void Prepare(Objective& objective, NoteHandler on_note) override {
    objective_ = &objective;
    on_note_ = std::move(on_note);
    const Device& device = objective.device();
    count_ = objective.Gradients().size();
    for (int i = 0; i < 2 * param_.history(); ++i) pairs_.emplace_back(device, count_);
    for (auto* const array : {&direction_, &weights_, &gradient_}) array->emplace(device, count_);
    sum_.emplace(device, 1);
    device_ = &device;
    coefficients_.resize(static_cast<size_t>(param_.history()));
    curvatures_.resize(coefficients_.size());
    const auto scale = LossScaleOf(spec_, HasF16Gradients(objective.net()));
    // A loss scale that grows between two steps changes how the gradients are rounded.
    alike_ = !scale && PassesAreIdentical(objective.net());
    if (!scale) return;
    scale_.emplace(device, *scale);
    objective.net().ScaleLoss(scale_->on_device());
    LetGradientsTellOfNan(objective.net());
  }

  // Reuses the loss and gradient of the last step if they still belong to the current weights.
  void ComputeGradients(const Hyperparams&, bool) override {
    if (scale_) scale_->BeginStep();
    known_ = IsKnown();
    loss_ = known_ ? found_->loss : objective_->Evaluate(Pass::Batch::kNext);
  }

  float TakeLoss() override { return loss_; }

  // Searches along d and leaves the weights at the step found. The first step tried is hyper.lr or,
  // without pairs, hyper.lr / |g|. The weights stay the same if the gradient is zero or no step
  // lowers the value. If d does not point downhill, the pairs are dropped and d is -g.
  void Update(const Hyperparams& hyper) override {
    const double value = StartValue(hyper);
    Copy(objective_->Weights().data(), weights_->data());
    Copy(objective_->Gradients().data(), gradient_->data());
    SetDirection();
    double slope = Dot(direction_->data(), gradient_->data());
    if (!(slope < 0) && kept_ > 0) {  // rounding, or a loss that is not smooth
      DropPairs();
      SetDirection();
      slope = Dot(direction_->data(), gradient_->data());
    }
    if (!(slope < 0)) return;                                    // the gradient is zero
    const double first = kept_ > 0 ? 1 : 1 / std::sqrt(-slope);  // a step of length 1
    LineSearch search(value, slope, hyper.lr * first, param_.c1(), param_.c2());
    Search(value, search);
  }

  const std::vector<std::vector<float*>>& state_arrays() const override { return state_arrays_; }
  std::optional<LossScaleState> LossScale() override {
    return scale_ ? std::optional(scale_->state()) : std::nullopt;
  }
  void RestoreLossScale(const LossScaleState& state) override {
    if (scale_) scale_->Restore(state);
  }
  std::string SaveRecord() const override;
  void LoadRecord(const std::string& state) override;
  size_t Bytes() const override { return (4 * pairs_.size() + 8) * count_ * sizeof(float); }

 private:
  static constexpr int kMostPairs = 1000;

  int64_t Count() const { return static_cast<int64_t>(count_); }
  // Returns s of the pair at a place, the change of the weights.
  float* WeightChange(int pair) const { return pairs_[static_cast<size_t>(2 * pair)].data(); }
  // Returns y of the pair at a place, the change of the gradient.
  float* GradientChange(int pair) const { return pairs_[static_cast<size_t>(2 * pair + 1)].data(); }
  // Returns the place of the pair that is `ago` pairs old.
  int PlaceOf(int ago) const { return (next_ + 2 * param_.history() - 1 - ago) % param_.history(); }

  // Returns the dot product of two arrays on the device; waits for it.
  double Dot(const float* a, const float* b) const {
    ReduceSum(*device_, Count(), Product{a, b}, 1, sum_->data());
    return ReadSum();
  }
  // Copies the result of the last reduction to the host; waits for it.
  float ReadSum() const {
    float sum = 0;
    device_->CopyToHost(&sum, sum_->data(), sizeof(sum));
    return sum;
  }
  // to += factor * from.
  void AddMultiple(double factor, const float* from, float* to) const {
    trainer::Update(*device_, AddScaled{static_cast<float>(factor)}, Count(), to, from);
  }
  void Copy(const float* from, float* to) const {
    device_->Copy(BlockCopy(sizeof(float), 1, Count(), 0, 0), from, to);
  }

  // Drops all pairs, so that H is the identity.
  void DropPairs() { kept_ = next_ = 0; }

  void MakeFinite(float loss);
  bool IsKnown() const;
  double StartValue(const Hyperparams& hyper);
  double AddWeightDecay(float loss) const;
  void SetDirection();
  void Search(double value, LineSearch& search);
  void StorePair(const float* weights, const float* gradients, double fall);

  const SolverSpec& spec_;
  const caffe::LBFGSParameter& param_;
  Objective* objective_ = nullptr;
  NoteHandler on_note_;
  const Device* device_ = nullptr;
  size_t count_ = 0;
  float loss_ = 0;      // of this step
  bool known_ = false;  // whether the last step had found it
  float decay_ = 0;
  int iter_ = 0;
  std::optional<RetryLossScaler> scale_;
  // The result of the last step if all passes are identical. weights_ has a copy of the weights
  // that it found, and their gradient is still in the objective.
  struct Found {
    float loss = 0;
    double value = 0;  // loss plus weight decay
  };
  bool alike_ = false;
  std::optional<Found> found_;
  std::vector<DeviceFloats> pairs_;  // s and y of place 0, then of place 1, ...
  int kept_ = 0, next_ = 0;          // number of pairs; place of the next one
  std::vector<double> curvatures_;   // s y, by place
  std::vector<double> coefficients_;
  double gamma_ = 1;
  std::optional<DeviceFloats> direction_, weights_, gradient_, sum_;
  std::vector<std::vector<float*>> state_arrays_;  // always empty
};

// If the scaled loss made the gradient overflow, halves the factor and evaluates the same batch
// again.
void Lbfgs::MakeFinite(float loss) {
  if (!scale_ || !std::isfinite(loss)) return;
  while (!std::isfinite(objective_->Norm(objective_->Gradients()))) {
    on_note_(scale_->Halve(iter_));
    objective_->Evaluate(Pass::Batch::kSame);
  }
}

// Returns true if the last step's loss and gradient belong to the current weights, which other
// ranks may have moved since.
bool Lbfgs::IsKnown() const {
  if (!found_) return false;
  ReduceSum(*device_, Count(), Distance{objective_->Weights().data(), weights_->data()}, 1,
            sum_->data());
  return ReadSum() == 0;
}

// Returns the value that the search starts from, and leaves its gradient in the objective. Takes
// both from the last step if they still hold; a changed weight decay needs another evaluation.
double Lbfgs::StartValue(const Hyperparams& hyper) {
  iter_ = hyper.iter;
  if (known_ && hyper.weight_decay == decay_) return std::exchange(found_, {})->value;
  if (known_) objective_->Evaluate(Pass::Batch::kSame);
  found_.reset();
  decay_ = hyper.weight_decay;
  MakeFinite(loss_);
  return AddWeightDecay(loss_);
}

// Divides the gradients by the number of passes and the loss scale, and adds the weight decay to
// them. Returns the loss plus weight_decay * decay_mult * |w|^2 / 2 of each parameter.
double Lbfgs::AddWeightDecay(float loss) const {
  const float scale = objective_->GradientScale() / (scale_ ? scale_->factor() : 1);
  float* const gradients = objective_->Gradients().data();
  if (scale != 1) trainer::Update(*device_, Scale{scale}, Count(), gradients);
  if (decay_ == 0) return loss;
  double squares = 0;
  for (const Param* param : objective_->params()) {
    const float decay = decay_ * param->decay_mult;
    if (param->grad == nullptr || decay == 0) continue;
    trainer::Update(*device_, AddScaled{decay}, param->count(), param->grad,
                    static_cast<const float*>(param->weight));
    const double norm = objective_->Norm({param->weight, static_cast<size_t>(param->count())});
    squares += 0.5 * decay * norm * norm;
  }
  return loss + squares;
}

// Sets d = -H g by the two-loop recursion, algorithm 7.4.
void Lbfgs::SetDirection() {
  float* const d = direction_->data();
  Copy(gradient_->data(), d);
  for (int ago = 0; ago < kept_; ++ago) {
    const int place = PlaceOf(ago);
    const auto i = static_cast<size_t>(place);
    coefficients_[i] = Dot(WeightChange(place), d) / curvatures_[i];
    AddMultiple(-coefficients_[i], GradientChange(place), d);
  }
  const double gamma = kept_ > 0 ? gamma_ : 1;
  trainer::Update(*device_, Scale{static_cast<float>(-gamma)}, Count(), d);
  for (int ago = kept_; ago-- > 0;) {
    const int place = PlaceOf(ago);
    const auto i = static_cast<size_t>(place);
    // d is -r of algorithm 7.4, so `back` is its -beta and the signs below are reversed.
    const double back = Dot(GradientChange(place), d) / curvatures_[i];
    AddMultiple(-coefficients_[i] - back, WeightChange(place), d);
  }
}

// Evaluates the objective at the steps that `search` asks for, at most max_evaluations of them.
// Keeps the weights of the last one if its value is not above `value`; otherwise restores the
// weights and drops the pairs. A search that stopped at kGoOn for lack of evaluations counts as
// failed.
void Lbfgs::Search(double value, LineSearch& search) {
  float* const weights = objective_->Weights().data();
  const double first_slope = Dot(direction_->data(), gradient_->data());
  for (int tries = 1;; ++tries) {
    const double step = search.step();
    trainer::Update(*device_, StepAlong{static_cast<float>(step)}, Count(), weights,
                    static_cast<const float*>(weights_->data()),
                    static_cast<const float*>(direction_->data()));
    const float loss = objective_->Evaluate(Pass::Batch::kSame);
    MakeFinite(loss);
    const double now = AddWeightDecay(loss);
    const float* const gradients = objective_->Gradients().data();
    const auto outcome = search.Add(now, Dot(gradients, direction_->data()));
    const bool last = tries >= param_.max_evaluations();
    if (outcome == LineSearch::Outcome::kGoOn && !last) continue;
    if (outcome == LineSearch::Outcome::kGoOn || !(now <= value)) break;
    StorePair(weights, gradients, step * -first_slope);
    if (!alike_) return;
    found_ = {loss, now};
    return Copy(weights, weights_->data());
  }
  Copy(weights_->data(), weights);
  on_note_(
      Join("The line search found no step that meets its conditions; the weights do not change",
           kept_ > 0 ? ", and the next step follows the gradient" : ""));
  DropPairs();
}

// Stores the pair of the step just made, unless the curvature s y is too small. s is the difference
// of the rounded weights, because y is the difference of the gradients at them. `fall`: the
// decrease that the tangent predicts.
void Lbfgs::StorePair(const float* weights, const float* gradients, double fall) {
  float *const s = WeightChange(next_), *const y = GradientChange(next_);
  trainer::Update(*device_, Subtract{}, Count(), s, weights,
                  static_cast<const float*>(weights_->data()));
  trainer::Update(*device_, Subtract{}, Count(), y, gradients,
                  static_cast<const float*>(gradient_->data()));
  const double curvature = Dot(s, y);
  if (curvature <= std::numeric_limits<float>::epsilon() * fall) return;
  gamma_ = curvature / Dot(y, y);
  curvatures_[static_cast<size_t>(next_)] = curvature;
  next_ = (next_ + 1) % param_.history();
  kept_ = std::min(kept_ + 1, param_.history());
}

// The record: number of pairs, next place, gamma, the curvatures, and the pairs in use by place.
std::string Lbfgs::SaveRecord() const {
  const int32_t head[] = {kept_, next_};
  std::string state(reinterpret_cast<const char*>(head), sizeof(head));
  state.append(reinterpret_cast<const char*>(&gamma_), sizeof(gamma_));
  state.append(reinterpret_cast<const char*>(curvatures_.data()),
               curvatures_.size() * sizeof(double));
  const size_t bytes = count_ * sizeof(float);
  for (int i = 0; i < 2 * kept_; ++i) {
    state.resize(state.size() + bytes);
    device_->CopyToHost(state.data() + state.size() - bytes, pairs_[static_cast<size_t>(i)].data(),
                        bytes);
  }
  return state;
}

// Throws kBadSnapshot if the record does not fit the history and the number of learned parameters.
void Lbfgs::LoadRecord(const std::string& state) {
  int32_t head[2] = {};
  const size_t bytes = count_ * sizeof(float), numbers = curvatures_.size() * sizeof(double);
  const size_t fixed = sizeof(head) + sizeof(gamma_) + numbers;
  if (state.size() >= sizeof(head)) std::memcpy(head, state.data(), sizeof(head));
  const bool fits = head[0] >= 0 && head[0] <= param_.history() && head[1] >= 0 &&
                    head[1] < param_.history() &&
                    state.size() == fixed + 2 * static_cast<size_t>(head[0]) * bytes;
  if (!fits) {
    throw Error(ErrorCode::kBadSnapshot,
                Join("the snapshot has ", state.size(),
                     " bytes of L-BFGS state, which does not fit a run with history ",
                     param_.history(), " and ", count_,
                     " learned parameters; resume with the lbfgs_param and the net of that run"));
  }
  kept_ = head[0];
  next_ = head[1];
  const char* from = state.data() + sizeof(head);
  std::memcpy(&gamma_, from, sizeof(gamma_));
  std::memcpy(curvatures_.data(), from + sizeof(gamma_), numbers);
  from = state.data() + fixed;
  for (int i = 0; i < 2 * kept_; ++i, from += bytes) {
    device_->CopyToDevice(pairs_[static_cast<size_t>(i)].data(), from, bytes);
  }
}

const RegisterOptimizer<Lbfgs> kLbfgs("LBFGS");

}  // namespace
}  // namespace trainer
