#include "trainer/steps/objective.h"

#include <algorithm>
#include <utility>

#include "trainer/backend/loops/map.h"
#include "trainer/rules/clip.h"

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
      sums_(device, net, params, iter_size, group),
      labels_(iter_size > 1 && sums_.parts() == 1 ? OnlyLabelCount(net) : nullptr),
      norm_(device, 1),
      arrived_(NumRanges()) {
  for (Started& started : started_) started.sums.resize(static_cast<size_t>(sums_.parts()));
  if (labels_ != nullptr) net.DisableCapture("the loss counts the labels of several passes");
}

void Objective::SumOver(Communicator* group) {
  if (group == group_) return;
  group_ = group;
  sums_.SumOver(group);
  arrived_ = NumRanges();
}

float Objective::Evaluate(NetBatch batch) {
  Start(batch);
  ReadPasses();
  if (num_started_ > 1) std::swap(started_[0], started_[1]);
  return TakeOldest();
}

void Objective::Start(NetBatch batch, const std::function<void()>* then) {
  if (num_started_ == kAhead) {
    throw Error(ErrorCode::kInternal, "an evaluation is started, and two losses are not taken");
  }
  if (batch == NetBatch::kSame && iter_size_ * sums_.parts() > 1) {
    throw Error(ErrorCode::kInternal, "a batch of several passes cannot be evaluated again");
  }
  if (!zero_) params_.ClearGradients();
  zero_ = false;
  arrived_ = 0;
  Started& started = started_[static_cast<size_t>(num_started_++)];
  std::ranges::fill(started.sums, 0.0f);
  started.unread = iter_size_ * sums_.parts();
  try {
    schedule_ == nullptr ? RunPasses(batch, then) : RunScheduled(batch, &started);
  } catch (...) {  // there is no loss to be taken
    num_started_ = 0;
    throw;
  }
}

void Objective::RunPasses(NetBatch batch, const std::function<void()>* then) {
  for (int pass = 0; pass < iter_size_; ++pass) {
    for (int part = 0; part < sums_.parts(); ++part) {
      sums_.Begin(pass, part);
      GradientSink* const sink = sums_.SinkOf(pass, part);
      if (labels_ != nullptr) {
        labels_->BeginPass(pass, iter_size_);
        net_.StartForward(batch);
        if (pass > 0) ScaleGradients(labels_->ScaleOfEarlier());
        net_.Backward(sink);
      } else if (batch == NetBatch::kNext && sums_.parts() == 1) {
        net_.StartPass(sink, pass + 1 == iter_size_ ? then : nullptr);
      } else {
        net_.StartForward(batch);
        const bool looks = part == 0 && pass + 1 == iter_size_ && sums_.parts() > 1;
        if (looks && look_) look_();
        net_.Backward(sink);
      }
      sums_.End(pass, part);
      while (net_.in_flight() > (net_.RunsAhead() ? 1 : 0)) ReadPass();
    }
  }
}

void Objective::ScaleGradients(float factor) {
  const std::span<float> gradients = params_.Gradients();
  ForEach(device_, static_cast<int64_t>(gradients.size()), ScaleBy{gradients.data(), factor});
}

void Objective::RunScheduled(NetBatch batch, Started* started) {
  if (batch == NetBatch::kSame) {
    throw Error(ErrorCode::kInternal, "a part of a net cannot evaluate a batch again");
  }
  started->sums[0] = schedule_->Run(iter_size_);
  started->unread = 0;
}

// The oldest pass that was started.
void Objective::ReadPass() {
  Started& of = started_[started_[0].unread > 0 ? 0 : 1];
  const auto unread = static_cast<size_t>(of.unread--), parts = of.sums.size();
  of.sums[(parts - unread % parts) % parts] += net_.TakeLoss();
}

float Objective::TakeLoss() {
  if (num_started_ == 0) throw Error(ErrorCode::kInternal, "a loss that was not started is taken");
  while (started_[0].unread > 0) ReadPass();
  return TakeOldest();
}

// Of an evaluation whose passes are all read.
float Objective::TakeOldest() {
  std::swap(started_[0], started_[1]);
  --num_started_;
  std::vector<float>& losses = started_[1].sums;
  for (float& loss : losses) loss /= static_cast<float>(iter_size_);
  return sums_.Finish(losses);
}

float Objective::Loss(NetBatch batch) {
  if (schedule_ != nullptr) return schedule_->RunForward();
  ReadPasses();
  std::vector<float> losses;
  for (int part = 0; part < sums_.parts(); ++part) {
    sums_.BeginForward(0, part);
    losses.push_back(net_.Forward(batch));
    sums_.EndForward(part);
  }
  return sums_.Finish(losses);
}

void Objective::ReadPasses() {
  while (net_.in_flight() > 0) ReadPass();
}

std::span<float> Objective::Gradients() {
  for (int i = arrived_; i < NumRanges(); ++i) Await(i);
  return params_.Gradients();
}

float Objective::GradientScale() const {
  return 1 / static_cast<float>(iter_size_ * NumReplicas());
}

int Objective::NumRanges() const {
  return group_ == nullptr ? 1 : static_cast<int>(net_.gradient_slices().size());
}

void Objective::Await(int i) {
  if (group_ == nullptr || i < arrived_) return;
  group_->WaitFor(i);
  arrived_ = i + 1;
}

std::span<float> Objective::SummedRanges(int i, int* next) {
  *next = i + 1;
  if (group_ == nullptr) return params_.Gradients();
  Await(i);
  const std::vector<GradientSlice>& slices = net_.gradient_slices();
  std::span<float> range = slices[static_cast<size_t>(i)].values;
  for (const int last = std::max(arrived_ - 1, group_->ArrivedWith(i)); *next <= last; ++*next) {
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
