#include "cuda/copy_stream.h"

#include "cuda/stream.h"

namespace trainer::cuda {
namespace {

// Copies on a stream of its own, which events order with the device's stream.
class CudaCopyStream final : public CopyStream {
 public:
  explicit CudaCopyStream(const CudaDevice& device) : device_(device) {}

  void CopyToDevice(void* to, const void* host, size_t bytes) override {
    if (bytes == 0) return;
    device_.Use();
    Check(GetRuntime()->MemcpyAsync(to, host, bytes, kHostToDevice, stream_.get()),
          "copying a batch to it (cudaMemcpyAsync)");
  }
  void ComputeWaitsForCopies() override {
    device_.Use();
    copied_.Record(stream_.get());
    copied_.MakeWait(device_.stream());
  }
  void CopiesWaitForCompute() override {
    device_.Use();
    computed_.Record(device_.stream());
    computed_.MakeWait(stream_.get());
  }
  void WaitForCopies() override {
    device_.Use();
    Check(GetRuntime()->StreamSynchronize(stream_.get()),
          "waiting for copies of batches (cudaStreamSynchronize)");
  }

 private:
  const CudaDevice& device_;
  StreamEvent copied_, computed_;
  OwnedStream stream_{"making a queue of copies (cudaStreamCreate)"};
};

// Copies on the device's own stream, or, with a mark, on another stream.
class Read final : public AsyncReadback {
 public:
  Read(const CudaDevice& device, StreamEvent* mark, Stream queue)
      : device_(device), mark_(mark), queue_(queue) {}
  ~Read() override {
    if (started_) done_.Wait();
  }

  // Waits for the mark, if there is one, and then lets the device's stream wait for the copy.
  void Start(void* host, const void* from, size_t bytes) override {
    device_.Use();
    if (mark_ != nullptr) mark_->MakeWait(queue_);
    Check(GetRuntime()->MemcpyAsync(host, from, bytes, kDeviceToHost, queue_),
          "copying results to the host (cudaMemcpyAsync)");
    done_.Record(queue_);
    if (mark_ != nullptr) done_.MakeWait(device_.stream());
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
  StreamEvent* mark_;
  Stream queue_;
  StreamEvent done_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<CopyStream> MakeCopyStream(const CudaDevice& device) {
  device.Use();
  return std::make_unique<CudaCopyStream>(device);
}

std::unique_ptr<AsyncReadback> MakeReadback(const CudaDevice& device) {
  device.Use();
  return std::make_unique<Read>(device, nullptr, device.stream());
}

std::unique_ptr<AsyncReadback> NewReadbackAt(const CudaDevice& device, StreamEvent& mark,
                                             Stream queue) {
  device.Use();
  return std::make_unique<Read>(device, &mark, queue);
}

}  // namespace trainer::cuda
