#include "trainer/steps/objective.h"

#include <utility>

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
  Start(batch);
  ReadPasses();
  Started& own = started_[static_cast<size_t>(--num_started_)];
  return MeanOverReplicas(std::exchange(own, {}).sum / static_cast<float>(iter_size_));
}

void Objective::Start(NetBatch batch) {
  if (num_started_ == kAhead) {
    throw Error(ErrorCode::kInternal, "an evaluation is started, and two losses are not taken");
  }
  if (batch == NetBatch::kSame && iter_size_ > 1) {
    throw Error(ErrorCode::kInternal, "a batch of several passes cannot be evaluated again");
  }
  if (!zero_) params_.ClearGradients();
  zero_ = false;
  arrived_ = 0;
  started_[static_cast<size_t>(num_started_++)] = {0, iter_size_};
  try {
    for (int pass = 0; pass < iter_size_; ++pass) {
      net_.StartForward(batch);
      net_.Backward(pass + 1 == iter_size_ ? group_ : nullptr);
      while (net_.NumStarted() > (net_.RunsAhead() ? 1 : 0)) ReadPass();
    }
  } catch (...) {  // there is no loss to be taken
    num_started_ = 0;
    throw;
  }
}

// The oldest pass that was started.
void Objective::ReadPass() {
  Started& of = started_[started_[0].unread > 0 ? 0 : 1];
  --of.unread;
  of.sum += net_.TakeLoss();
}

float Objective::TakeLoss() {
  if (num_started_ == 0) throw Error(ErrorCode::kInternal, "a loss that was not started is taken");
  while (started_[0].unread > 0) ReadPass();
  const Started oldest = std::exchange(started_[0], std::exchange(started_[1], {}));
  --num_started_;
  return MeanOverReplicas(oldest.sum / static_cast<float>(iter_size_));
}

float Objective::Loss(NetBatch batch) {
  ReadPasses();
  return MeanOverReplicas(net_.Forward(batch));
}

void Objective::ReadPasses() {
  while (net_.NumStarted() > 0) ReadPass();
}

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
