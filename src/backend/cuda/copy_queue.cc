#include "cuda/copy_queue.h"

#include "cuda/cuda_device.h"
#include "cuda/errors.h"

namespace trainer::cuda {
namespace {

// An event, for order alone.
class Mark {
 public:
  Mark() {
    Check(GetRuntime()->EventCreateWithFlags(&event_, kEventDisableTiming),
          "making an event (cudaEventCreate)");
  }
  ~Mark() { GetRuntime()->EventDestroy(event_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  // Behind what `stream` was given so far.
  void Set(Stream stream) {
    Check(GetRuntime()->EventRecord(event_, stream), "marking a queue (cudaEventRecord)");
  }
  void MakeWait(Stream stream) {
    Check(GetRuntime()->StreamWaitEvent(stream, event_, 0),
          "making a queue wait (cudaStreamWaitEvent)");
  }
  int Wait() { return GetRuntime()->EventSynchronize(event_); }

 private:
  Event event_ = nullptr;
};

class CopyStream final : public CopyQueue {
 public:
  explicit CopyStream(const CudaDevice& device) : device_(device) {
    device_.Use();
    Check(GetRuntime()->StreamCreateWithFlags(&stream_, kStreamNonBlocking),
          "making a queue of copies (cudaStreamCreate)");
  }
  ~CopyStream() override {
    GetRuntime()->StreamSynchronize(stream_);
    GetRuntime()->StreamDestroy(stream_);
  }

  void CopyToDevice(void* to, const void* host, size_t bytes) override {
    if (bytes == 0) return;
    device_.Use();
    Check(GetRuntime()->MemcpyAsync(to, host, bytes, kHostToDevice, stream_),
          "copying a batch to it (cudaMemcpyAsync)");
  }
  void ComputeAfterCopies() override {
    device_.Use();
    copied_.Set(stream_);
    copied_.MakeWait(device_.stream());
  }
  void CopyAfterComputations() override {
    device_.Use();
    computed_.Set(device_.stream());
    computed_.MakeWait(stream_);
  }
  void WaitForCopies() override {
    device_.Use();
    Check(GetRuntime()->StreamSynchronize(stream_),
          "waiting for copies of batches (cudaStreamSynchronize)");
  }

 private:
  const CudaDevice& device_;
  Stream stream_ = nullptr;
  Mark copied_, computed_;
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
