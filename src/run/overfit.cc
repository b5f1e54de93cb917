#include "overfit.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <set>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr float kEnough = 0.005f, kLearned = 0.1f;  // of the first loss

// Returns a loss with two decimals, or with two digits if it would be 0.00.
std::string LossText(float loss) {
  if (std::abs(loss) >= 0.005f) return Join(std::fixed, std::setprecision(2), loss);
  return Join(std::setprecision(2), loss);
}

std::vector<float> WeightsOn(const Net& net, const Param& param) {
  std::vector<float> weights(static_cast<size_t>(param.count()));
  net.device().CopyToHost(weights.data(), param.weight, weights.size() * sizeof(float));
  return weights;
}

// How far training moved the weights.
struct Movement {
  bool moved = false;               // any learned weight
  double change = 0;                // norm of the change, over the norm of the weights
  std::set<std::string> unchanged;  // layers that learn, and whose weights are as before
};

Movement MeasureMovement(const Net& net, const std::vector<std::vector<float>>& before) {
  Movement movement;
  double changed = 0, all = 0;
  std::set<std::string> moved;
  for (size_t i = 0; i < before.size(); ++i) {
    const Param& param = *net.params()[i];
    if (param.is_running_stat) continue;
    const std::vector<float> after = WeightsOn(net, param);
    double of_param = 0;
    for (size_t k = 0; k < after.size(); ++k) {
      of_param += std::pow(double{after[k]} - before[i][k], 2);
      all += double{before[i][k]} * before[i][k];
    }
    changed += of_param;
    (of_param > 0 ? moved : movement.unchanged).insert(param.layer);
  }
  for (const std::string& layer : moved) movement.unchanged.erase(layer);
  movement.moved = changed > 0;
  movement.change = all > 0 ? std::sqrt(changed / all) : changed > 0 ? 1 : 0;
  return movement;
}

// Returns a sentence about layers whose weights did not move, or "".
std::string UnchangedText(const std::set<std::string>& layers) {
  if (layers.empty()) return "";
  const std::vector<std::string> names(layers.begin(), layers.end());
  return Join(". The weights of ", JoinList(names),
              " did not change: lr_mult is 0 there, or no gradient arrives");
}

}  // namespace

void OverfitVerdict::Begin(const Net& net) {
  for (const Param* param : net.params()) before_.push_back(WeightsOn(net, *param));
}

bool OverfitVerdict::Note(int iter, float loss) {
  if (iter_ == 0) first_ = least_ = loss;
  iter_ = iter;
  last_ = loss;
  least_ = std::min(least_, loss);
  return iter >= batches_ && first_ > 0 && loss <= kEnough * first_;
}

std::string OverfitVerdict::Conclude(const Net& net) const {
  const std::string losses = Join("loss ", LossText(first_), " -> ", LossText(last_));
  const std::string after = Counted(iter_, "iteration");
  const bool learned = first_ > 0 ? last_ <= kLearned * first_ : last_ < first_;
  if (learned) return Join("learned: ", losses, ", in ", after);
  throw Error(ErrorCode::kNotLearned,
              EscapeControl(Join("not learned: ", losses, " after ", after, " on ",
                                 Counted(batches_, "batch"), ". Likely cause: ", Cause(net))));
}

std::string OverfitVerdict::Cause(const Net& net) const {
  constexpr double kLittle = 1e-3;  // of the weights
  constexpr float kFalls = 0.7f;    // of the first loss
  const Movement movement = MeasureMovement(net, before_);
  if (!movement.moved) {
    return Join("nothing is trained: no weight changed. base_lr is ", base_lr_,
                "; it must be above 0, some lr_mult too, and the gradient must reach the weights "
                "(propagate_down)");
  }
  const std::string unchanged = UnchangedText(movement.unchanged);
  if (last_ > first_ || least_ < 0.5f * last_) {
    return Join("base_lr ", base_lr_, " is too high: the loss fell to ", LossText(least_),
                " and rose again. Try --base_lr=", base_lr_ / 10, unchanged);
  }
  if (movement.change < kLittle) {
    return Join("base_lr ", base_lr_, " is too low: the weights changed by only ",
                100 * movement.change, " %. Try --base_lr=", base_lr_ * 10,
                ", or 'trainer find-lr'", unchanged);
  }
  if (last_ < kFalls * first_) {
    return Join("the loss still falls, so base_lr ", base_lr_,
                " may be too low. Try --base_lr=", base_lr_ * 10,
                ", or 'trainer find-lr', or fewer batches", unchanged);
  }
  return Join(
      "the labels may not match the records (for example equal records with different labels, or "
      "records that are all alike after mean and scale; run 'trainer dataset check' and 'trainer "
      "check'), or the net is too small to fit them",
      unchanged);
}

}  // namespace trainer
