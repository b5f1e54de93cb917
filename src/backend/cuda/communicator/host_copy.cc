// Sums the gradients of a GPU on the host.

#include <glog/logging.h>

#include <deque>
#include <thread>

#include "cuda/communicator/device_communicator.h"
#include "cuda/stream.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer::cuda {
namespace {

constexpr size_t kAlignment = 64;

// Host memory for the gradients, from the host's group if it provides such memory. It is
// page-locked so that copies overlap with computations.
class Staging {
 public:
  Staging(const CudaDevice& device, Communicator& host, size_t bytes)
      : from_(host.gradient_memory() == nullptr ? &device.PinnedMemory() : host.gradient_memory()),
        bytes_(bytes),
        data_(from_->allocate(bytes, kAlignment)) {
    if (host.gradient_memory() == nullptr) return;
    locked_ = GetRuntime()->HostRegister(data_, bytes, kHostRegisterPortable) == kSuccess;
    if (locked_) return;
    GetRuntime()->GetLastError();
    LOG(WARNING) << bytes << " bytes of gradients cannot be page-locked (cudaHostRegister): they "
                 << "are summed more slowly; try 'ulimit -l unlimited'";
  }
  ~Staging() {
    if (locked_) GetRuntime()->HostUnregister(data_);
    from_->deallocate(data_, bytes_, kAlignment);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  float* data() const { return static_cast<float*>(data_); }

 private:
  std::pmr::memory_resource* from_;
  size_t bytes_;
  void* data_;
  bool locked_ = false;
};

// A bucket is copied to the host on one stream, summed there, and copied back on another stream. It
// is passed to the host's group when its copy has arrived. From the first WaitGradient until all
// buckets are waited for, the group sums nothing else. stats() counts only the time that the
// training thread spends in the host's group: it waits for its own GPU outside of the group.
class HostCopyCommunicator final : public DeviceCommunicator {
 public:
  using DeviceCommunicator::DeviceCommunicator;

  std::optional<CommStats> stats() const override { return host().stats().value_or(CommStats{}); }

  void ForgetSlices() override {
    staging_.reset();
    copies_.clear();
    handed_ = 0;
    DropCapture();
  }

 protected:
  // Starts the copy to the host. In the first pass the memory for it is allocated later, in Finish.
  void Begin(size_t i) override {
    if (i == 0) handed_ = 0;
    if (staging_ != nullptr) StartCopyToHost(i);
  }
  // Waits for the host's sum of bucket `i` and starts its copy back. Also passes later buckets on
  // whose copies have arrived.
  void Finish(size_t i) override {
    if (staging_ == nullptr) MakeStaging();
    while (handed_ <= i) PassNextToHost();
    while (handed_ < buckets().size() && copies_[handed_].down.IsReached()) PassNextToHost();
    host().WaitGradient(static_cast<int>(i));
    Check(GetRuntime()->MemcpyAsync(buckets()[i].data(), Staged(i).data(),
                                    buckets()[i].size_bytes(), kHostToDevice, up_.get()),
          "copying sums of gradients to it (cudaMemcpyAsync)");
    summed_.Record(up_.get());
    summed_.MakeWait(device().stream());
  }
  // Passes the remaining buckets on if some were passed on before, because the host's group must
  // get all slices of a pass before another sum.
  void BeforeHost() override {
    while (handed_ > 0 && handed_ < buckets().size()) PassNextToHost();
  }

 private:
  struct Copy {
    size_t offset, count;  // position in staging_, in floats
    StreamEvent down;      // reached when the copy to the host is done
  };

  // Allocates the host memory and starts all copies. Called in the first pass, when all buckets and
  // their sizes are known.
  void MakeStaging() {
    size_t count = 0;
    for (const std::span<float> bucket : buckets()) {
      copies_.emplace_back(count, bucket.size());
      count += bucket.size();
    }
    staging_ = std::make_unique<Staging>(device(), host(), count * sizeof(float));
    for (size_t i = 0; i < buckets().size(); ++i) StartCopyToHost(i);
  }

  // Returns the host memory of a bucket.
  std::span<float> Staged(size_t i) const {
    return {staging_->data() + copies_[i].offset, copies_[i].count};
  }

  // Starts the copy of a bucket to the host, after its computations.
  void StartCopyToHost(size_t i) {
    if (i >= copies_.size() || copies_[i].count != buckets()[i].size()) {
      throw Error(ErrorCode::kInternal, "gradients differ from pass to pass");
    }
    computed(i).MakeWait(down_.get());
    Check(GetRuntime()->MemcpyAsync(Staged(i).data(), buckets()[i].data(),
                                    buckets()[i].size_bytes(), kDeviceToHost, down_.get()),
          "copying gradients from it (cudaMemcpyAsync)");
    copies_[i].down.Record(down_.get());
  }

  // Waits until the copy of the next bucket has arrived and passes the bucket to the host's group.
  void PassNextToHost() {
    while (!copies_[handed_].down.IsReached()) {
      Poll();
      std::this_thread::yield();
    }
    host().OnGradientReady(static_cast<int>(handed_), Staged(handed_));
    ++handed_;
  }

  std::unique_ptr<Staging> staging_;
  std::deque<Copy> copies_;  // one per bucket
  size_t handed_ = 0;        // buckets passed to the host's group in this pass
  StreamEvent summed_;
  OwnedStream down_{"making a queue of copies (cudaStreamCreate)"};
  OwnedStream up_{// the streams are last: they must end before the memory is freed
                  "making a queue of copies (cudaStreamCreate)"};
};

}  // namespace

std::unique_ptr<Communicator> MakeStaged(const Device& device, const GpuGroupOptions& options) {
  const auto& gpu = dynamic_cast<const CudaDevice&>(device);
  gpu.Use();
  return std::make_unique<HostCopyCommunicator>(gpu, options);
}

}  // namespace trainer::cuda
