#pragma once
// What the emulated cuBLASLt and cuDNN share.

#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/emulated_gpu/state.h"
#include "trainer/tensor/dtype.h"

namespace emulated_gpu {

// A call of a library: holds the mutex, counts. status(): what the call returns at once, 0 where it
// goes on: an injected status, or the ones given here where a test refuses the call or the device
// is broken.
class LibraryCall {
 public:
  LibraryCall(const char* name, int refused, int broken);
  int status() const { return status_; }

 private:
  std::scoped_lock<std::recursive_mutex> lock_;
  int status_;
};

// Objects that a library made, so that others are told apart.
template <class T>
class Objects {
 public:
  T* Make() { return live_.emplace_back(std::make_unique<T>()).get(); }
  bool Has(const T* object) const {
    for (const auto& it : live_) {
      if (it.get() == object) return true;
    }
    return false;
  }
  bool Destroy(T* object) {
    return std::erase_if(live_, [&](const auto& it) { return it.get() == object; }) > 0;
  }

 private:
  std::vector<std::unique_ptr<T>> live_;
};

// Whether the `bytes` there are in one allocation of the device: a problem where not.
bool IsOperand(int device, const void* memory, size_t bytes, const std::string& what);

// Whether a workspace is at a multiple of 256 bytes, as cublasLtMatmul needs it and as cudaMalloc
// gives it to cuDNN: a problem where not.
bool IsWorkspaceAligned(const void* workspace, const std::string& what);

// Whether the calling thread uses the device that the library's handle was made for: a problem
// where not, as the library would then start its kernels on another device.
bool IsCurrent(int device, const std::string& what);

// A number of a matrix or tensor in memory, as float.
inline float LoadAt(trainer::DType type, const void* data, int64_t index) {
  return trainer::DispatchDtype(type, [&](auto tag) {
    return trainer::Load(static_cast<const typename decltype(tag)::Type*>(data)[index]);
  });
}
inline void StoreAt(trainer::DType type, void* data, int64_t index, float value) {
  trainer::DispatchDtype(type, [&](auto tag) {
    trainer::Store(static_cast<typename decltype(tag)::Type*>(data)[index], value);
  });
}

// With 10 bits of fraction, as tensor cores read f32 numbers where that is allowed.
float RoundToTf32(float value);
// The value or its neighbour, by chance: a sum in an order that nobody knows.
float Jitter(float value);

}  // namespace emulated_gpu
