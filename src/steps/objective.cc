#include "trainer/steps/objective.h"

#include "trainer/rules/clip.h"

namespace trainer {

Objective::Objective(const Device& device, Net& net, ParamStore& params, int iter_size,
                     ReplicaGroup* group)
    : device_(device),
      net_(net),
      params_(params),
      iter_size_(iter_size),
      group_(group),
      norm_(device, 1),
      arrived_(NumRanges()) {}

float Objective::Evaluate(NetBatch batch) {
  if (batch == NetBatch::kSame && iter_size_ > 1) {
    throw Error(ErrorCode::kInternal, "a batch of several passes cannot be evaluated again");
  }
  if (!zero_) params_.ClearGradients();
  zero_ = false;
  arrived_ = 0;
  float loss = 0;
  for (int pass = 0; pass < iter_size_; ++pass) {
    loss += net_.Forward(batch);
    net_.Backward(pass + 1 == iter_size_ ? group_ : nullptr);
  }
  return MeanOverReplicas(loss / static_cast<float>(iter_size_));
}

float Objective::Loss(NetBatch batch) { return MeanOverReplicas(net_.Forward(batch)); }

float Objective::MeanOverReplicas(float loss) {
  if (group_ == nullptr) return loss;
  group_->Sum({&loss, 1});
  return loss / static_cast<float>(NumReplicas());
}

std::span<float> Objective::Gradients() {
  for (int i = arrived_; i < NumRanges(); ++i) SummedRange(i);
  return params_.Gradients();
}

float Objective::GradientScale() const {
  return 1 / static_cast<float>(iter_size_ * NumReplicas());
}

std::vector<float*> Objective::PerParam(std::span<float> like_weights) const {
  std::vector<float*> places;
  for (const Param* param : net_.params()) {
    places.push_back(like_weights.data() + (param->weight - params_.Weights().data()));
  }
  return places;
}

int Objective::NumRanges() const {
  return group_ == nullptr ? 1 : static_cast<int>(net_.gradient_slices().size());
}

std::span<float> Objective::SummedRange(int i) {
  if (group_ == nullptr) return params_.Gradients();
  if (i >= arrived_) {
    group_->WaitFor(i);
    arrived_ = i + 1;
  }
  return net_.gradient_slices()[static_cast<size_t>(i)].values;
}

float Objective::Norm(std::span<const float> values) {
  return L2Norm(device_, values, norm_.data());
}

}  // namespace trainer
