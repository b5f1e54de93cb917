#include "cuda/copy_queue.h"

#include "cuda/order.h"

namespace trainer::cuda {
namespace {

class CopyStream final : public CopyQueue {
 public:
  explicit CopyStream(const CudaDevice& device) : device_(device) {}

  void CopyToDevice(void* to, const void* host, size_t bytes) override {
    if (bytes == 0) return;
    device_.Use();
    Check(GetRuntime()->MemcpyAsync(to, host, bytes, kHostToDevice, stream_.get()),
          "copying a batch to it (cudaMemcpyAsync)");
  }
  void ComputeAfterCopies() override {
    device_.Use();
    copied_.Set(stream_.get());
    copied_.MakeWait(device_.stream());
  }
  void CopyAfterComputations() override {
    device_.Use();
    computed_.Set(device_.stream());
    computed_.MakeWait(stream_.get());
  }
  void WaitForCopies() override {
    device_.Use();
    Check(GetRuntime()->StreamSynchronize(stream_.get()),
          "waiting for copies of batches (cudaStreamSynchronize)");
  }

 private:
  const CudaDevice& device_;
  Mark copied_, computed_;
  OwnStream stream_{"making a queue of copies (cudaStreamCreate)"};
};

class Read final : public HostRead {
 public:
  explicit Read(const CudaDevice& device) : device_(device) { device_.Use(); }
  ~Read() override {
    if (started_) done_.Wait();
  }

  void Start(void* host, const void* from, size_t bytes) override {
    device_.Use();
    Check(GetRuntime()->MemcpyAsync(host, from, bytes, kDeviceToHost, device_.stream()),
          "copying results to the host (cudaMemcpyAsync)");
    done_.Set(device_.stream());
    started_ = true;
  }
  void Wait() override {
    if (!started_) return;
    started_ = false;
    device_.Use();
    Check(done_.Wait(), "waiting for results (cudaEventSynchronize)");
  }

 private:
  const CudaDevice& device_;
  Mark done_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<CopyQueue> MakeCopyStream(const CudaDevice& device) {
  device.Use();
  return std::make_unique<CopyStream>(device);
}

std::unique_ptr<HostRead> MakeRead(const CudaDevice& device) {
  device.Use();
  return std::make_unique<Read>(device);
}

}  // namespace trainer::cuda
