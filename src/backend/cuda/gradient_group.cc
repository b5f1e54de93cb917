#include "cuda/gradient_group.h"

#include "trainer/base/error.h"

namespace trainer::cuda {

void GradientGroup::OnReady(int slice, std::span<float> values) {
  if (slice == 0) {
    if (finished_ != buckets_.size() || !joined_.empty()) {
      throw Error(ErrorCode::kInternal, "sums of the pass before were not waited for");
    }
    buckets_.clear();
    bucket_of_.clear();
    finished_ = 0;
  }
  if (joined_.data() + joined_.size() != values.data()) Flush();
  joined_ = joined_.empty() ? values : std::span(joined_.data(), joined_.size() + values.size());
  bucket_of_.push_back(buckets_.size());
  if (joined_.size() >= options_.bucket_floats) Flush();
}

void GradientGroup::Flush() {
  if (joined_.empty()) return;
  buckets_.push_back(joined_);
  joined_ = {};
  device_.Use();
  Begin();
}

void GradientGroup::WaitFor(int slice) {
  Flush();
  device_.Use();
  for (; finished_ <= bucket_of_[static_cast<size_t>(slice)]; ++finished_) Finish(finished_);
}

void GradientGroup::Sum(std::span<float> values) {
  Flush();
  BeforeHost();
  host().Sum(values);
}

std::vector<std::string> GradientGroup::Gather(const std::string& own) {
  Flush();
  BeforeHost();
  return host().Gather(own);
}

void GradientGroup::Broadcast(std::span<float> values) {
  Flush();
  BeforeHost();
  host().Broadcast(values);
}

bool IsZeroOnAll(ReplicaGroup& host, float value) {
  host.Sum({&value, 1});
  return value == 0;
}

}  // namespace trainer::cuda
