#include "cuda/communicator/device_communicator.h"

#include "trainer/base/error/error.h"

namespace trainer::cuda {

// Adds the slice to the open bucket, which is closed when it has bucket_floats, or first if the
// slice does not follow it in memory. Slice 0 begins a new pass.
void DeviceCommunicator::OnGradientReady(int slice, std::span<float> values) {
  if (slice == 0) {
    RequireAllFinished();
    Clear();
  }
  if (joined_.data() + joined_.size() != values.data()) Flush();
  joined_ = joined_.empty() ? values : std::span(joined_.data(), joined_.size() + values.size());
  bucket_of_.push_back(buckets_.size());
  if (joined_.size() >= options_.bucket_floats) Flush();
}

// Closes the open bucket: records the event at which its values are computed, and begins its sum,
// except in a recording.
void DeviceCommunicator::Flush() {
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

// Throws kInternal unless the caller has waited for all buckets.
void DeviceCommunicator::RequireAllFinished() const {
  if (finished_ == buckets_.size() && joined_.empty()) return;
  throw Error(ErrorCode::kInternal, "sums of the pass before were not waited for");
}

// Forgets the buckets of the pass.
void DeviceCommunicator::Clear() {
  buckets_.clear();
  bucket_of_.clear();
  joined_ = {};
  finished_ = 0;
}

// From now on, closing a bucket only records its event, which each replay reaches anew.
void DeviceCommunicator::BeginCapture() { recording_ = true; }

// Closes the last bucket. Its sum and all others begin with OnReplay.
void DeviceCommunicator::EndCapture() {
  Flush();
  recording_ = false;
  finished_ = buckets_.size();  // no sum has begun
}

// Forgets the buckets of the recording.
void DeviceCommunicator::DropCapture() {
  Clear();
  recording_ = false;
}

// Begins the sums of all buckets, which wait for their events in the replay. Throws kInternal if an
// earlier pass was not waited for.
void DeviceCommunicator::OnReplay() {
  RequireAllFinished();
  device_.Use();
  finished_ = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) Begin(i);
}

// Closes the open bucket and finishes the sums up to the bucket of the slice, in order.
void DeviceCommunicator::WaitGradient(int slice) {
  Flush();
  device_.Use();
  for (; finished_ <= bucket_of_[static_cast<size_t>(slice)]; ++finished_) Finish(finished_);
}

// Returns the last slice in the same bucket.
int DeviceCommunicator::LastReduced(int slice) const {
  const auto first = static_cast<size_t>(slice);
  size_t last = first;
  while (last + 1 < bucket_of_.size() && bucket_of_[last + 1] == bucket_of_[first]) ++last;
  return static_cast<int>(last);
}

// Sums on the host. The open bucket is closed first, because all sums have one order.
void DeviceCommunicator::AllReduce(std::span<float> values) {
  Flush();
  BeforeHost();
  host().AllReduce(values);
}

// Gathers on the host. The open bucket is closed first, because all sums have one order.
std::vector<std::string> DeviceCommunicator::Gather(const std::string& own) {
  Flush();
  BeforeHost();
  return host().Gather(own);
}

// Broadcasts on the host. The open bucket is closed first, because all sums have one order.
void DeviceCommunicator::Broadcast(std::span<float> values) {
  Flush();
  BeforeHost();
  host().Broadcast(values);
}

bool IsZeroOnAll(Communicator& host, float value) {
  host.AllReduce({&value, 1});
  return value == 0;
}

}  // namespace trainer::cuda
