#pragma once
// Shared by the emulated libraries.

#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/emulated_gpu/state.h"
#include "trainer/tensor/dtype.h"

namespace emulated_gpu {

// A call of a library: it holds the mutex and counts. status() is what the call must return at
// once, or 0: an injected status, `refused` if a test refuses the call, or `broken` if the device
// is broken.
class LibraryCall {
 public:
  LibraryCall(const char* name, int refused, int broken);
  int status() const { return status_; }

 private:
  std::scoped_lock<std::recursive_mutex> lock_;
  int status_;
};

// The objects that a library created, to recognise invalid handles.
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

// Returns whether the `bytes` at `memory` are in one allocation of the device. Adds a problem if
// not.
bool IsOperand(int device, const void* memory, size_t bytes, const std::string& what);

// Returns whether a workspace is aligned to 256 bytes, as cublasLtMatmul needs it and as cudaMalloc
// gives it to cuDNN. Adds a problem if not.
bool IsWorkspaceAligned(const void* workspace, const std::string& what);

// Returns whether the calling thread uses the device of the library's handle. Adds a problem if
// not, because the library would then start its kernels on another device.
bool IsCurrent(int device, const std::string& what);

// Loads or stores an element of a matrix or tensor as float.
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

// Returns the value with 10 bits of fraction, as tensor cores read f32 numbers where TF32 is
// allowed.
float RoundToTf32(float value);
// Returns the value or one of its neighbours at random, like a sum in an unknown order.
float Jitter(float value);

}  // namespace emulated_gpu
