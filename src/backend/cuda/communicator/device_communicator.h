#pragma once
// Base class of the communicators that sum a GPU's gradients on the host, with NCCL and with MPI.

#include <deque>
#include <vector>

#include "cuda/cuda_device.h"
#include "cuda/stream.h"
#include "trainer/backend/device/gpu_communicator.h"

namespace trainer::cuda {

// Joins slices to buckets, which are the same in each pass, and leaves all else to the host's
// group. All ranks begin the same sums in the same order: that of their calls, whatever the GPUs
// have done by then.
class DeviceCommunicator : public Communicator {
 public:
  DeviceCommunicator(const CudaDevice& device, const GpuGroupOptions& options)
      : device_(device), options_(options) {}

  Rank rank() const final { return host().rank(); }
  void OnGradientReady(int slice, std::span<float> values) final;
  void WaitGradient(int slice) final;
  int LastReduced(int slice) const final;
  void AllReduce(std::span<float> values) final;
  std::string WhyNotTreeOrder() const override { return host().WhyNotTreeOrder(); }
  std::vector<std::string> Gather(const std::string& own) final;
  void Broadcast(std::span<float> values) final;
  void Heartbeat(int iterations) final { host().Heartbeat(iterations); }
  std::string NameOf(int rank) const final { return host().NameOf(rank); }

  bool SumsCapturedPasses() const final { return true; }
  void BeginCapture() final;
  void EndCapture() final;
  void DropCapture() final;
  void OnReplay() final;

 protected:
  // Begins the sum of bucket `i`, whose values are valid once the computations reach computed(i).
  // Called once per bucket, in order.
  virtual void Begin(size_t i) = 0;
  // Makes computations queued from now on see the sum of bucket `i`. Called once per bucket, in
  // order, after all sums have begun.
  virtual void Finish(size_t i) = 0;
  // Called before each call to the host's group.
  virtual void BeforeHost() {}

  const CudaDevice& device() const { return device_; }
  Communicator& host() const { return *options_.host; }
  // Advances the pending sums of the host's group.
  void Poll() const { options_.poll(); }
  const GpuGroupOptions& options() const { return options_; }
  // Returns the buckets of this pass so far.
  const std::vector<std::span<float>>& buckets() const { return buckets_; }
  StreamEvent& computed(size_t i) { return computed_[i]; }

 private:
  void RequireAllFinished() const;
  void Clear();
  void Flush();

  const CudaDevice& device_;
  GpuGroupOptions options_;
  std::span<float> joined_;  // slices of the bucket that is not full yet
  std::vector<std::span<float>> buckets_;
  std::vector<size_t> bucket_of_;     // the bucket of each slice
  std::deque<StreamEvent> computed_;  // one event per bucket
  size_t finished_ = 0;               // number of buckets that Finish was called for
  bool recording_ = false;
};

// Returns whether `value` is 0 on all ranks. Every rank must call it; values must not be negative.
bool IsZeroOnAll(Communicator& host, float value);

// Implements MakeStagedGroup of device/gpu_communicator.h.
std::unique_ptr<Communicator> MakeStaged(const Device& device, const GpuGroupOptions& options);
// Implements MakeNcclGroup. Collective on the host's group.
std::unique_ptr<Communicator> MakeNccl(const Device& device, const GpuGroupOptions& options,
                                       std::string* note);
// Implements MakeMpiGroup. Collective on the host's group.
std::unique_ptr<Communicator> MakeMpi(const Device& device, const GpuGroupOptions& options,
                                      std::string* note);

}  // namespace trainer::cuda
