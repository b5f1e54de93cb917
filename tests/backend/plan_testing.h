#pragma once
// Provides numbers, tensors of each type, and guarded scratch for the tests of plans.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "support/test_device.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// Returns the device that creates the plans. Plans may be used until the test program ends.
inline const Device& MetaDevice() {
  static const std::unique_ptr<Device> device = MakeTestDevice();
  if (!TestsOnGpu()) MakeCpuDevice(2);  // sets the team of all CPU devices
  return *device;
}

// A tensor that owns its memory on the host and, if the device is a GPU, on the device. An access
// to one side copies the newer data there, so do not keep its pointer while the other side is
// written.
class Values {
 public:
  Values(const Shape& shape, DType dtype)
      : bytes_(static_cast<size_t>(shape.Count()) * SizeOf(dtype)), shape_(shape), dtype_(dtype) {}
  // Returns numbers uniform in [-1, 1].
  static Values Random(const Shape& shape, DType dtype, uint32_t seed) {
    Values values(shape, dtype);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < shape.Count(); ++i) values.Set(i, uniform(random));
    return values;
  }
  static Values Of(const Shape& shape, const std::vector<float>& numbers,
                   DType dtype = DType::kF32) {
    Values values(shape, dtype);
    for (size_t i = 0; i < numbers.size(); ++i) values.Set(static_cast<int64_t>(i), numbers[i]);
    return values;
  }
  // Returns a tensor of NaN, so that an element that is never written is detected.
  static Values Unset(const Shape& shape, DType dtype = DType::kF32) {
    return Of(shape, std::vector<float>(static_cast<size_t>(shape.Count()), NAN), dtype);
  }

  // These return the data on the device.
  operator Tensor() const { return {DeviceData(), shape_, dtype_}; }
  operator ConstTensor() const { return {DeviceData(), shape_, dtype_}; }
  float* f32() const { return static_cast<float*>(DeviceData()); }
  // These return the data on the host, for plans of the reference.
  Tensor Host() const { return {HostData(), shape_, dtype_}; }
  float* HostF32() const { return static_cast<float*>(HostData()); }

  int64_t size() const { return shape_.Count(); }
  void Set(int64_t i, float value) const {
    DispatchDtype(dtype_, [&](auto tag) {
      Store(static_cast<typename decltype(tag)::Type*>(HostData())[i], value);
    });
  }
  float operator[](int64_t i) const {
    return DispatchDtype(dtype_, [&](auto tag) {
      return Load(static_cast<typename decltype(tag)::Type*>(HostData())[i]);
    });
  }
  std::vector<float> ToVector() const {
    std::vector<float> numbers;
    for (int64_t i = 0; i < size(); ++i) numbers.push_back((*this)[i]);
    return numbers;
  }

 private:
  void* HostData() const {
    if (newest_on_device_) MetaDevice().CopyToHost(bytes_.data(), copy_->data(), bytes_.size());
    newest_on_device_ = false;
    return bytes_.data();
  }
  void* DeviceData() const {
    if (!TestsOnGpu()) return bytes_.data();
    const std::span<const std::byte> bytes(bytes_);
    if (!copy_) copy_.emplace(MetaDevice(), bytes);
    if (!newest_on_device_) copy_->Write(bytes);
    newest_on_device_ = true;
    return copy_->data();
  }

  // Begins arrays with a cache line, as devices do: only then loops may store past the caches.
  template <class T>
  struct AtALine {
    using value_type = T;
    AtALine() = default;
    template <class U>
    AtALine(const AtALine<U>&) {}
    static T* allocate(size_t n) {
      return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64}));
    }
    static void deallocate(T* memory, size_t) { ::operator delete (memory, std::align_val_t{64}); }
    bool operator==(const AtALine&) const = default;
  };

  mutable std::vector<std::byte, AtALine<std::byte>> bytes_;
  Shape shape_;
  DType dtype_;
  mutable std::optional<OnDevice<std::byte>> copy_;
  mutable bool newest_on_device_ = false;
};

// Provides `bytes` of memory aligned to 64, between guard bytes that must not change. The memory is
// the device's, or the host's for plans of the reference.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t bytes, bool of_host = false)
      : bytes_(bytes), memory_(bytes + 3 * kGuard, std::byte{0xA5}) {
    std::byte* start = memory_.data();
    if (TestsOnGpu() && !of_host) start = copy_.emplace(MetaDevice(), memory_).data();
    offset_ = kGuard + (64 - (reinterpret_cast<uintptr_t>(start) + kGuard) % 64) % 64;
    begin_ = start + offset_;
  }
  std::span<std::byte> span() { return {begin_, bytes_}; }
  bool Intact() const {
    const std::vector<std::byte> now = copy_ ? copy_->Read() : memory_;
    for (size_t i = 0; i < now.size(); ++i) {
      const bool inside = i >= offset_ && i < offset_ + bytes_;
      if (!inside && now[i] != std::byte{0xA5}) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 256;
  size_t bytes_, offset_ = 0;
  std::vector<std::byte> memory_;
  std::optional<OnDevice<std::byte>> copy_;
  std::byte* begin_ = nullptr;
};

// Expects |got - want| <= bound * max(1, largest |want|), element by element.
inline void ExpectClose(const Values& got, const Values& want, float bound, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  float top = 1;
  for (int64_t i = 0; i < want.size(); ++i) top = std::max(top, std::fabs(want[i]));
  int shown = 0;
  for (int64_t i = 0; i < want.size() && shown < 3; ++i) {
    if (!(std::fabs(got[i] - want[i]) <= bound * top)) {
      ADD_FAILURE() << what << "[" << i << "] is " << got[i] << ", not " << want[i];
      ++shown;
    }
  }
}

}  // namespace trainer
