#pragma once
// Runs a convolution in all directions on a device and by the reference, on the same numbers.

#include <cmath>
#include <cstring>
#include <random>

#include "backend/conv_images.h"
#include "support/test_device.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/backend/primitives/conv.h"

namespace trainer {

struct ConvNumbers {
  std::vector<float> y, dx, dweight, dbias;
};

class ConvRun {
 public:
  explicit ConvRun(const ConvDesc& desc) : desc_(desc) {
    x_ = Random(desc.InShape().Count(), 1);
    dy_ = Random(desc.OutShape().Count(), 2);
    weight_ = Random(desc.WeightShape().Count(), 3);
    bias_ = Random(desc.out_channels, 4);
    // Rounds the values to the storage type, so that both start from the same numbers.
    for (auto* values : {&x_, &dy_}) *values = Loaded(Stored(*values));
  }
  std::vector<float>& x() { return x_; }

  // `gap` is the offset of the weights, in floats, from the start of an allocation, as in a net.
  ConvNumbers On(const Device& device, size_t gap = 0, bool may_drop_nan = false) const {
    const auto plan = device.NewConv(desc_);
    if (may_drop_nan) plan->AllowDroppedNan();
    const OnDevice<std::byte> x(device, Stored(x_)), dy(device, Stored(dy_));
    const OnDevice<std::byte> y(device, dy.size()), dx(device, x.size());
    const OnDevice<float> weight(device, Behind(gap, weight_)), bias(device, Behind(gap, bias_));
    const OnDevice<float> dweight(device, Behind(gap, weight_)), dbias(device, Behind(gap, bias_));
    // A memory plan aligns scratch memory to kMemoryAlign and no more.
    const OnDevice<std::byte> scratch(device, plan->ScratchBytes() + kMemoryAlign);
    const auto scratch_span = scratch.span().subspan(kMemoryAlign);
    plan->Forward({x.data(), desc_.InShape(), desc_.dtype}, weight.data() + gap,
                  desc_.bias ? bias.data() + gap : nullptr,
                  {y.data(), desc_.OutShape(), desc_.dtype}, scratch_span);
    plan->BackwardData({dy.data(), desc_.OutShape(), desc_.dtype}, weight.data() + gap,
                       {dx.data(), desc_.InShape(), desc_.dtype}, scratch_span);
    plan->BackwardWeight({x.data(), desc_.InShape(), desc_.dtype},
                         {dy.data(), desc_.OutShape(), desc_.dtype}, dweight.data() + gap,
                         dbias.data() + gap, scratch_span);
    return {Loaded(y.Read()), Loaded(dx.Read()), From(gap, dweight.Read()),
            From(gap, dbias.Read())};
  }

  ConvNumbers ByReference() const {
    const auto plan = MakeReferenceConv(desc_);
    std::vector<std::byte> x = Stored(x_), dy = Stored(dy_), y(dy.size()), dx(x.size());
    std::vector<float> dweight = weight_, dbias = bias_;
    std::vector<double> scratch(plan->ScratchBytes() / sizeof(double) + 16);
    const std::span<std::byte> all(reinterpret_cast<std::byte*>(scratch.data()),
                                   scratch.size() * sizeof(double));
    plan->Forward({x.data(), desc_.InShape(), desc_.dtype}, weight_.data(),
                  desc_.bias ? bias_.data() : nullptr, {y.data(), desc_.OutShape(), desc_.dtype},
                  all);
    plan->BackwardData({dy.data(), desc_.OutShape(), desc_.dtype}, weight_.data(),
                       {dx.data(), desc_.InShape(), desc_.dtype}, all);
    plan->BackwardWeight({x.data(), desc_.InShape(), desc_.dtype},
                         {dy.data(), desc_.OutShape(), desc_.dtype}, dweight.data(), dbias.data(),
                         all);
    return {Loaded(y), Loaded(dx), dweight, dbias};
  }

  // Returns the largest difference in any direction, relative to the largest number there.
  static float Difference(const ConvNumbers& a, const ConvNumbers& b) {
    float most = 0;
    for (const auto& [left, right] :
         {std::pair(&a.y, &b.y), std::pair(&a.dx, &b.dx), std::pair(&a.dweight, &b.dweight),
          std::pair(&a.dbias, &b.dbias)}) {
      float top = 1e-6f, off = 0;
      for (const float value : *right) top = std::max(top, std::fabs(value));
      for (size_t i = 0; i < right->size(); ++i) {
        const float error = std::fabs((*left)[i] - (*right)[i]);
        off = error <= off ? off : error;  // NaN stays
      }
      most = off / top <= most ? most : off / top;
    }
    return most;
  }

  std::vector<std::byte> Stored(const std::vector<float>& values) const {
    std::vector<std::byte> bytes(values.size() * SizeOf(desc_.dtype));
    DispatchDtype(desc_.dtype, [&](auto tag) {
      auto* to = reinterpret_cast<typename decltype(tag)::Type*>(bytes.data());
      for (size_t i = 0; i < values.size(); ++i) Store(to[i], values[i]);
    });
    return bytes;
  }
  std::vector<float> Loaded(const std::vector<std::byte>& bytes) const {
    std::vector<float> values(bytes.size() / SizeOf(desc_.dtype));
    DispatchDtype(desc_.dtype, [&](auto tag) {
      const auto* from = reinterpret_cast<const typename decltype(tag)::Type*>(bytes.data());
      for (size_t i = 0; i < values.size(); ++i) values[i] = Load(from[i]);
    });
    return values;
  }

 private:
  static std::vector<float> Random(int64_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = uniform(random);
    return values;
  }
  static std::vector<float> Behind(size_t gap, const std::vector<float>& values) {
    std::vector<float> all(gap, -1000.0f);
    all.insert(all.end(), values.begin(), values.end());
    return all;
  }
  static std::vector<float> From(size_t gap, const std::vector<float>& all) {
    return {all.begin() + static_cast<std::ptrdiff_t>(gap), all.end()};
  }

  ConvDesc desc_;
  std::vector<float> x_, dy_, weight_, bias_;
};

}  // namespace trainer
