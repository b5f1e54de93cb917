#pragma once
// Shared by the tests of the emulated GPU: its runtime, a stream, kernels, and memory to read.

#include <gmock/gmock.h>

#include <cstring>
#include <vector>

#include "cuda/bindings/runtime.h"
#include "support/emulated_gpu/emulated_device_code.h"
#include "support/emulated_gpu/emulated_gpu.h"

namespace emulated_gpu {

namespace cuda = trainer::cuda;

inline const cuda::Runtime& Cuda() { return *cuda::GetRuntime(); }

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    Reset();
    SetSeed(1);
    stream_ = NewStream();
  }
  void TearDown() override {
    Cuda().StreamDestroy(stream_);
    Reset();
    EXPECT_THAT(Leaks(), testing::IsEmpty());
  }

  static cuda::Stream NewStream() {
    cuda::Stream stream = nullptr;
    EXPECT_EQ(Cuda().StreamCreateWithFlags(&stream, cuda::kStreamNonBlocking), 0);
    return stream;
  }
  static cuda::Event NewEvent(unsigned flags = cuda::kEventDisableTiming) {
    cuda::Event event = nullptr;
    EXPECT_EQ(Cuda().EventCreateWithFlags(&event, flags), 0);
    return event;
  }

  cuda::Stream stream_ = nullptr;
};

// n numbers on the device.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(size_t n) : n_(n) {
    void* memory = nullptr;
    EXPECT_EQ(Cuda().Malloc(&memory, n * sizeof(T)), 0);
    data_ = static_cast<T*>(memory);
  }
  ~OnDevice() { Cuda().Free(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  T* data() const { return data_; }
  size_t bytes() const { return n_ * sizeof(T); }
  // Returns the current values; waits for nothing.
  std::vector<T> Values() const {
    std::vector<T> values(n_);
    Peek(values.data(), data_, bytes());
    return values;
  }

 private:
  size_t n_;
  T* data_ = nullptr;
};

// n page-locked numbers of the host.
template <class T>
class PageLocked {
 public:
  explicit PageLocked(size_t n) : n_(n) {
    void* memory = nullptr;
    EXPECT_EQ(Cuda().HostAlloc(&memory, n * sizeof(T), 0), 0);
    data_ = static_cast<T*>(memory);
  }
  ~PageLocked() { Cuda().FreeHost(data_); }
  PageLocked(const PageLocked&) = delete;
  PageLocked& operator=(const PageLocked&) = delete;

  T& operator[](size_t i) const { return data_[i]; }
  T* data() const { return data_; }
  size_t bytes() const { return n_ * sizeof(T); }

 private:
  size_t n_;
  T* data_ = nullptr;
};

// Queues kernel(args...), as Launch of backend/loops/launch.h does.
template <class... Params, class... Args>
void Start(cuda::Stream stream, void (*kernel)(Params...), dim3 blocks, dim3 threads,
           const Args&... args) {
  Launch(stream, blocks, threads,
         [kernel, ... params = static_cast<Params>(args)] { kernel(params...); });
}

template <class T>
__global__ void FillKernel(T* out, int n, T value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = value;
}

// out[i] = in[i] + add
inline __global__ void AddKernel(const int* in, int* out, int n, int add) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = in[i] + add;
}

}  // namespace emulated_gpu
