#pragma once
// What the tests of plans share: numbers, tensors of either type, and scratch with guards.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "trainer/tensor/tensor.h"

namespace trainer {

// A tensor that owns its memory.
class Values {
 public:
  Values(const Shape& shape, DType dtype) : bytes_(shape.Count() * SizeOf(dtype)) {
    view_ = {bytes_.data(), shape, dtype};
  }
  // Uniform in [-1, 1].
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
    for (size_t i = 0; i < numbers.size(); ++i) values.Set(i, numbers[i]);
    return values;
  }
  // All NaN, so that a place left unwritten shows.
  static Values Unset(const Shape& shape, DType dtype = DType::kF32) {
    return Of(shape, std::vector<float>(shape.Count(), NAN), dtype);
  }

  operator Tensor() const { return view_; }
  operator ConstTensor() const { return view_; }
  float* f32() const { return view_.f32(); }
  int64_t size() const { return view_.Count(); }
  void Set(int64_t i, float value) {
    WithType(view_.dtype,
             [&](auto tag) { Store(view_.As<typename decltype(tag)::Type>()[i], value); });
  }
  float operator[](int64_t i) const {
    return WithType(view_.dtype,
                    [&](auto tag) { return Load(view_.As<typename decltype(tag)::Type>()[i]); });
  }
  std::vector<float> ToVector() const {
    std::vector<float> numbers;
    for (int64_t i = 0; i < size(); ++i) numbers.push_back((*this)[i]);
    return numbers;
  }

 private:
  std::vector<std::byte> bytes_;
  Tensor view_;
};

// `bytes` of memory aligned to 64, with marks before and behind that must stay.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t bytes)
      : bytes_(bytes), memory_(bytes + 3 * kGuard, std::byte{0xA5}) {
    const auto at = reinterpret_cast<uintptr_t>(memory_.data()) + kGuard;
    begin_ = memory_.data() + kGuard + (64 - at % 64) % 64;
  }
  std::span<std::byte> span() { return {begin_, bytes_}; }
  bool Intact() const {
    for (const std::byte* p = memory_.data(); p < begin_; ++p) {
      if (*p != std::byte{0xA5}) return false;
    }
    for (const std::byte* p = begin_ + bytes_; p < memory_.data() + memory_.size(); ++p) {
      if (*p != std::byte{0xA5}) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 256;
  size_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* begin_;
};

// |got - want| <= bound * (largest |want| + 1), element by element.
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
