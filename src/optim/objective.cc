#include "trainer/optim/objective.h"

#include <algorithm>
#include <utility>

#include "gradient_stats.h"
#include "trainer/backend/loops/map.h"
#include "tree_accumulator.h"

namespace trainer {
namespace {

struct ScaleBy {
  float* values;
  float factor;
  HD void operator()(int64_t i) const { values[i] *= factor; }
};

}  // namespace

Objective::Objective(const Device& device, Net& net, ParamStore& params, int iter_size,
                     Communicator* group)
    : device_(device),
      net_(net),
      params_(params),
      iter_size_(iter_size),
      group_(group),
      accumulator_(
          std::make_unique<TreeAccumulator>(device, net.graph(), params, iter_size, group)),
      labels_(iter_size > 1 && accumulator_->virtual_ranks() == 1 ? OnlyLabelCount(net) : nullptr),
      norm_(device, 1),
      arrived_(NumRanges()) {
  for (InFlight& evaluation : in_flight_)
    evaluation.sums.resize(static_cast<size_t>(accumulator_->virtual_ranks()));
  if (labels_ != nullptr) net.DisableCapture("the loss counts the labels of several passes");
}

Objective::~Objective() = default;

void Objective::ReduceOver(Communicator* group) {
  if (group == group_) return;
  group_ = group;
  accumulator_->ReduceOver(group);
  arrived_ = NumRanges();
}

float Objective::Evaluate(Pass::Batch batch) {
  Run(batch);
  ReadPasses();
  if (num_in_flight_ > 1) std::swap(in_flight_[0], in_flight_[1]);
  return TakeLoss();
}

void Objective::Run(Pass::Batch batch, const std::function<void()>* fused_update) {
  if (num_in_flight_ == kMaxInFlight) {
    throw Error(ErrorCode::kInternal, "an evaluation is started, and two losses are not taken");
  }
  if (batch == Pass::Batch::kSame &&
      (IsStage() || iter_size_ * accumulator_->virtual_ranks() > 1)) {
    throw Error(ErrorCode::kInternal,
                "a batch of several passes, or of a part of a net, cannot be evaluated again");
  }
  if (!zero_) params_.ClearGradients();
  zero_ = false;
  arrived_ = 0;
  InFlight& evaluation = in_flight_[static_cast<size_t>(num_in_flight_++)];
  std::ranges::fill(evaluation.sums, 0.0f);
  evaluation.unread = IsStage() ? 0 : iter_size_ * accumulator_->virtual_ranks();
  try {
    if (IsStage()) evaluation.sums[0] = schedule_->Run(iter_size_);
    for (int pass = 0; pass < iter_size_ && !IsStage(); ++pass) {
      const bool is_last = pass + 1 == iter_size_;
      GradientSink* const sink = is_last ? group_ : nullptr;
      if (accumulator_->virtual_ranks() > 1) {
        RunVirtualRanks(pass, batch);
      } else if (labels_ != nullptr) {
        labels_->BeginPass(pass, iter_size_);
        net_.Run({.mode = Pass::Mode::kForward, .batch = batch});
        if (pass > 0) ScaleGradients(labels_->ScaleOfEarlier());
        net_.Run({.mode = Pass::Mode::kBackward, .gradients = sink});
      } else {
        net_.Run(
            {.batch = batch, .gradients = sink, .fused_update = is_last ? fused_update : nullptr});
      }
      while (net_.in_flight() > (net_.RunsAhead() ? 1 : 0)) ReadPass();
    }
  } catch (...) {  // no loss can be taken from a failed evaluation
    num_in_flight_ = 0;
    throw;
  }
}

void Objective::RunVirtualRanks(int pass, Pass::Batch batch) {
  const bool is_last = pass + 1 == iter_size_;
  const int virtual_ranks = accumulator_->virtual_ranks();
  for (int virtual_rank = 0; virtual_rank < virtual_ranks; ++virtual_rank) {
    accumulator_->Begin(pass, virtual_rank);
    net_.Run({.mode = Pass::Mode::kForward, .batch = batch, .virtual_rank = virtual_rank});
    if (virtual_rank == 0 && is_last && look_) look_();
    net_.Run(
        {.mode = Pass::Mode::kBackward,
         .virtual_rank = virtual_rank,
         .gradients = is_last && virtual_rank + 1 == virtual_ranks ? accumulator_.get() : nullptr});
    accumulator_->End(pass, virtual_rank);
    ReadPasses();
  }
}

void Objective::ScaleGradients(float factor) {
  const std::span<float> gradients = params_.Gradients();
  ForEach(device_, static_cast<int64_t>(gradients.size()), ScaleBy{gradients.data(), factor});
}

// Reads the loss of the oldest pass in flight.
void Objective::ReadPass() {
  InFlight& of = in_flight_[in_flight_[0].unread > 0 ? 0 : 1];
  const auto unread = static_cast<size_t>(of.unread--), virtual_ranks = of.sums.size();
  of.sums[(virtual_ranks - unread % virtual_ranks) % virtual_ranks] += net_.TakeLoss();
}

float Objective::TakeLoss() {
  if (num_in_flight_ == 0)
    throw Error(ErrorCode::kInternal, "a loss that was not started is taken");
  while (in_flight_[0].unread > 0) ReadPass();
  std::swap(in_flight_[0], in_flight_[1]);
  --num_in_flight_;
  std::vector<float>& losses = in_flight_[1].sums;
  for (float& loss : losses) loss /= static_cast<float>(iter_size_);
  return NumRanks() == 1 ? losses[0] : accumulator_->Finish(losses);
}

float Objective::Loss(Pass::Batch batch) {
  if (schedule_ != nullptr) return schedule_->RunForward();
  ReadPasses();
  std::vector<float> losses;
  for (int virtual_rank = 0; virtual_rank < accumulator_->virtual_ranks(); ++virtual_rank) {
    accumulator_->BeginForward(0, virtual_rank);
    net_.Run({.mode = Pass::Mode::kForward, .batch = batch, .virtual_rank = virtual_rank});
    losses.push_back(net_.TakeLoss());
    accumulator_->EndForward(virtual_rank);
  }
  return NumRanks() == 1 ? losses[0] : accumulator_->Finish(losses);
}

void Objective::ReadPasses() {
  while (net_.in_flight() > 0) ReadPass();
}

std::span<float> Objective::Gradients() {
  for (int i = arrived_; i < NumRanges(); ++i) Await(i);
  return params_.Gradients();
}

float Objective::GradientScale() const { return 1 / static_cast<float>(iter_size_ * NumRanks()); }

int Objective::NumRanks() const { return accumulator_->total(); }

int Objective::NumRanges() const {
  return group_ == nullptr ? 1 : static_cast<int>(net_.gradient_slices().size());
}

void Objective::Await(int i) {
  if (group_ == nullptr || i < arrived_) return;
  group_->WaitGradient(i);
  arrived_ = i + 1;
}

std::span<float> Objective::NextReduced(int i, int* next) {
  *next = i + 1;
  if (group_ == nullptr) return params_.Gradients();
  Await(i);
  const std::vector<GradientSlice>& slices = net_.gradient_slices();
  std::span<float> range = slices[static_cast<size_t>(i)].values;
  for (const int last = std::max(arrived_ - 1, group_->LastReduced(i)); *next <= last; ++*next) {
    const std::span<float> more = slices[static_cast<size_t>(*next)].values;
    if (range.data() + range.size() != more.data()) break;
    range = {range.data(), range.size() + more.size()};
  }
  return range;
}

float Objective::Norm(std::span<const float> values) {
  return L2Norm(device_, values, norm_.data());
}

}  // namespace trainer
