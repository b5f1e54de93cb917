#include "cuda/communicator/device_communicator.h"

#include "trainer/base/error/error.h"

namespace trainer::cuda {

void GradientGroup::OnGradientReady(int slice, std::span<float> values) {
  if (slice == 0) {
    RequireAllFinished();
    Clear();
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
  const size_t i = buckets_.size() - 1;
  if (i >= computed_.size()) computed_.emplace_back();
  if (recording_) return computed_[i].RecordExternal(device_.stream());
  computed_[i].Record(device_.stream());
  Begin(i);
}

void GradientGroup::RequireAllFinished() const {
  if (finished_ == buckets_.size() && joined_.empty()) return;
  throw Error(ErrorCode::kInternal, "sums of the pass before were not waited for");
}

void GradientGroup::Clear() {
  buckets_.clear();
  bucket_of_.clear();
  joined_ = {};
  finished_ = 0;
}

void GradientGroup::BeginCapture() { recording_ = true; }

void GradientGroup::EndCapture() {
  Flush();
  recording_ = false;
  finished_ = buckets_.size();  // none has begun
}

void GradientGroup::DropCapture() {
  Clear();
  recording_ = false;
}

void GradientGroup::OnReplay() {
  RequireAllFinished();
  device_.Use();
  finished_ = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) Begin(i);
}

void GradientGroup::WaitFor(int slice) {
  Flush();
  device_.Use();
  for (; finished_ <= bucket_of_[static_cast<size_t>(slice)]; ++finished_) Finish(finished_);
}

int GradientGroup::ArrivedWith(int slice) const {
  const auto first = static_cast<size_t>(slice);
  size_t last = first;
  while (last + 1 < bucket_of_.size() && bucket_of_[last + 1] == bucket_of_[first]) ++last;
  return static_cast<int>(last);
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

bool IsZeroOnAll(Communicator& host, float value) {
  host.Sum({&value, 1});
  return value == 0;
}

}  // namespace trainer::cuda
