// Kernels that load several neighbouring channels at once, on tensors whose alignment forbids it.

#include <cmath>
#include <functional>
#include <random>
#include <tuple>

#include "cuda/gpu_testing.h"
#include "trainer/backend/loops/map_random.h"
#include "trainer/backend/primitives/batch_norm.h"
#include "trainer/backend/primitives/lrn.h"
#include "trainer/backend/primitives/pool.h"

namespace trainer {
namespace {

class AlignmentTest : public EmulatedGpu {
 protected:
  // A tensor of numbers in [-1, 1], `gap` elements after the start of an allocation.
  class Array {
   public:
    Array(const Device& gpu, const Shape& shape, size_t gap, uint32_t seed)
        : shape_(shape), gap_(gap), values_(gpu, Random(gap + CountOf(shape), seed)) {}
    operator Tensor() const { return {f32(), shape_}; }
    operator ConstTensor() const { return {f32(), shape_}; }
    float* f32() const { return values_.data() + gap_; }
    void AddTo(std::vector<float>* all) const {
      const std::vector<float> read = values_.Read();
      all->insert(all->end(), read.end() - static_cast<int64_t>(CountOf(shape_)), read.end());
    }

   private:
    static size_t CountOf(const Shape& shape) { return static_cast<size_t>(shape.Count()); }
    // Draws from the end, so that the tensor's numbers do not depend on the gap.
    static std::vector<float> Random(size_t count, uint32_t seed) {
      std::mt19937 random(seed);
      std::uniform_real_distribution<float> uniform(-1, 1);
      std::vector<float> values(count);
      for (size_t i = count; i-- > 0;) values[i] = uniform(random);
      return values;
    }

    Shape shape_;
    size_t gap_;
    OnDevice<float> values_;
  };

  static void ExpectAlike(const std::function<std::vector<float>(size_t gap)>& run) {
    const std::vector<float> want = run(0);
    for (const size_t gap : {1, 2, 4}) {
      const std::vector<float> got = run(gap);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 2e-5f) << gap << ' ' << i;
    }
    EXPECT_THAT(emulated_gpu::Problems(), testing::IsEmpty());
  }
};

TEST_F(AlignmentTest, BatchNormTakesTensorsAnywhere) {
  for (const bool other : {false, true}) {
    const BatchNormDesc desc{.shape = {4, 8, 5, 7}, .other = other, .relu = true};
    ExpectAlike([&](size_t gap) {
      const auto plan = device().NewBatchNorm(desc);
      const OnDevice<std::byte> kept(device(), plan->WorkspaceBytes());
      const OnDevice<std::byte> scratch(device(), plan->ScratchBytes());
      const BatchNormStats at = plan->StatsIn(kept.span());
      const Array x(device(), desc.shape, gap, 1), added(device(), desc.shape, gap, 2);
      const Array y(device(), desc.shape, gap, 3), dy(device(), desc.shape, gap, 4);
      const Array dx(device(), desc.shape, gap, 5), dadded(device(), desc.shape, gap, 6);
      const Array scale(device(), {8}, gap, 7), shift(device(), {8}, gap, 8);
      const Array dscale(device(), {8}, gap, 9), dshift(device(), {8}, gap, 10);
      plan->Moments(x, at, scratch.span());
      plan->Forward({x, added, scale.f32(), shift.f32(), y}, at);
      BatchNormGradients back{x,  y,  dy,           scale.f32(), shift.f32(),
                              dx, {}, dscale.f32(), dshift.f32()};
      if (other) back.dother = dadded;
      plan->Backward(back, at, scratch.span());
      std::vector<float> all;
      for (const Array* array : {&y, &dx, &dadded, &dscale, &dshift}) array->AddTo(&all);
      return all;
    });
  }
}

TEST_F(AlignmentTest, PoolsTakeTensorsAnywhere) {
  const auto out = [](int64_t in, int64_t kernel, int64_t stride) {
    return (in - kernel + stride - 1) / stride + 1;
  };
  for (const auto& [method, kernel, stride] : {std::tuple(PoolMethod::kMax, 3, 2),
                                               {PoolMethod::kMax, 2, 2},
                                               {PoolMethod::kMax, 3, 1},
                                               {PoolMethod::kMax, 3, 3},
                                               {PoolMethod::kAverage, 3, 2}}) {
    const PoolDesc desc{.method = method,
                        .batch = 2,
                        .channels = 8,
                        .in_h = 7,
                        .in_w = 6,
                        .out_h = out(7, kernel, stride),
                        .out_w = out(6, kernel, stride),
                        .kernel_h = kernel,
                        .kernel_w = kernel,
                        .stride_h = stride,
                        .stride_w = stride};
    ExpectAlike([&](size_t gap) {
      const auto plan = device().NewPool(desc);
      const OnDevice<std::byte> kept(device(), plan->WorkspaceBytes());
      const Array x(device(), desc.InShape(), gap, 1), y(device(), desc.OutShape(), gap, 2);
      const Array dy(device(), desc.OutShape(), gap, 3), dx(device(), desc.InShape(), gap, 4);
      plan->Forward(x, y, kept.span());
      plan->Backward(dy, dx, kept.span());
      std::vector<float> all;
      for (const Array* array : {&y, &dx}) array->AddTo(&all);
      return all;
    });
  }
}

TEST_F(AlignmentTest, SumsOverChannelsTakeTensorsAnywhere) {
  const Shape shape = {3, 12, 9, 11};
  ExpectAlike([&](size_t gap) {
    const Array x(device(), shape, gap, 1), y(device(), shape, gap, 2), g(device(), shape, gap, 3);
    const Array sums(device(), {12}, gap, 4);
    const auto desc = ChannelSumsDesc::Of(shape, 1);
    const ConstTensor times = y;
    device().AddChannelSums(desc, x, &times, sums.f32());
    EXPECT_TRUE(device().ReluGradAndBiasGrad(desc, x, y, g, sums.f32()));
    std::vector<float> all;
    for (const Array* array : {&g, &sums}) array->AddTo(&all);
    return all;
  });
}

// With 24 channels, a tile has whole pixels and is not full.
TEST_F(AlignmentTest, SumsOfSquaresTakeTensorsAnywhere) {
  const LrnDesc desc{.shape = {2, 24, 9, 7}, .factor = 0.3f};
  ExpectAlike([&](size_t gap) {
    const auto plan = device().NewLrn(desc);
    const Array x(device(), desc.shape, gap, 1), y(device(), desc.shape, gap, 2);
    const Array dy(device(), desc.shape, gap, 3), dx(device(), desc.shape, gap, 4);
    const OnDevice<std::byte> kept(device(), plan->WorkspaceBytes());
    const OnDevice<std::byte> scratch(device(), plan->ScratchBytes());
    plan->Forward(x, y, kept.span());
    plan->Backward(x, dy, dx, kept.span(), scratch.span());
    std::vector<float> all;
    for (const Array* array : {&y, &dx}) array->AddTo(&all);
    return all;
  });
}

struct AddIndexed {
  HD float operator()(int64_t i, float a, float b) const {
    return a + 2 * b + static_cast<float>(i % 7);
  }
};
struct AddHalf {
  HD void operator()(float& to, const float& x) const { to += 0.5f * x; }
};
struct AddDrawn {
  HD float operator()(uint32_t word, float x) const { return x + UniformFloat(word); }
};

// 5003 elements are groups of four, two groups per thread, and a rest.
TEST_F(AlignmentTest, MapsTakeTensorsAnywhere) {
  const Shape shape = {5003};
  ExpectAlike([&](size_t gap) {
    const Array x(device(), shape, gap, 1), other(device(), shape, gap, 2);
    const Array y(device(), shape, gap, 3), drawn(device(), shape, gap, 4);
    const Array sum(device(), shape, gap, 5);
    const OnDevice<uint32_t> pass(device(), std::vector<uint32_t>{3});
    MapIndexed(device(), AddIndexed{}, Tensor(y), ConstTensor(x), ConstTensor(other));
    MapIndexed(device(), AddIndexed{}, Tensor(x), ConstTensor(x), ConstTensor(other));
    MapRandom(device(), {5, 6}, pass.data(), AddDrawn{}, Tensor(drawn), ConstTensor(y));
    const float* const read_only = y.f32();
    Update(device(), AddHalf{}, shape.Count(), sum.f32(), read_only);
    std::vector<float> all;
    for (const Array* array : {&x, &y, &drawn, &sum}) array->AddTo(&all);
    return all;
  });
}

TEST_F(AlignmentTest, ConversionsTakeTensorsAnywhere) {
  const Shape shape = {1003};
  for (const DType type : {DType::kBF16, DType::kF16}) {
    ExpectAlike([&](size_t gap) {
      const Array x(device(), shape, gap, 1), rounded(device(), shape, gap, 2);
      const Array y(device(), shape, gap, 3);
      device().Convert(x, {rounded.f32(), shape, type});
      device().Convert({rounded.f32(), shape, type}, y);
      std::vector<float> all;
      y.AddTo(&all);
      return all;
    });
  }
}

}  // namespace
}  // namespace trainer
