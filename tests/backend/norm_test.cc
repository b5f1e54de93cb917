// Compares the plans of softmax, LRN and batch normalisation with their definitions in double.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/plan_testing.h"
#include "cpu/channel_pairs.h"
#include "trainer/backend/device/device.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class NormTest : public testing::TestWithParam<DType> {
 protected:
  const Device& device_ = MetaDevice();
  float Bound() const { return BoundOf(GetParam(), 2e-5f, 2e-2f); }
};
INSTANTIATE_TEST_SUITE_P(Types, NormTest, testing::ValuesIn(StoredTypes()),
                         [](const auto& tested) { return std::string(NameOf(tested.param)); });

TEST_P(NormTest, SoftmaxAndItsGradientAreThoseOfTheFormula) {
  const std::pair<Shape, int> cases[] = {
      {{7, 10}, 1}, {{3, 5, 4, 4}, 1}, {{3, 5, 4, 16}, 3}, {{2, 9, 32}, 1}, {{6, 1}, 0}};
  for (const auto& [shape, axis] : cases) {
    const auto plan = device_.NewSoftmax({.shape = shape, .axis = axis, .dtype = GetParam()});
    const Values x = Values::Random(shape, GetParam(), 1),
                 dy = Values::Random(shape, GetParam(), 2);
    const Values y = Values::Unset(shape, GetParam()), dx = Values::Unset(shape, GetParam());
    const Values want_y = Values::Unset(shape), want_dx = Values::Unset(shape);
    plan->Forward(x, y);
    plan->Backward(y, dy, dx);
    const Rows rows = AxisRows(shape, axis);
    for (int64_t r = 0; r < rows.count; ++r) {
      const auto at = [&](int64_t i) { return rows.Start(r) + i * rows.inner; };
      double sum = 0, dot = 0;
      for (int64_t i = 0; i < rows.length; ++i) sum += std::exp(double{x[at(i)]});
      for (int64_t i = 0; i < rows.length; ++i) {
        want_y.Set(at(i), static_cast<float>(std::exp(double{x[at(i)]}) / sum));
        dot += double{y[at(i)]} * dy[at(i)];
      }
      for (int64_t i = 0; i < rows.length; ++i) {
        want_dx.Set(at(i), static_cast<float>(y[at(i)] * (dy[at(i)] - dot)));
      }
    }
    ExpectClose(y, want_y, Bound(), plan->kernel().c_str());
    ExpectClose(dx, want_dx, Bound(), plan->kernel().c_str());
  }
}

// Returns the sum of f(neighbour) over the neighbours of element `at`, by the definition.
template <class F>
double OverNeighbours(const LrnDesc& d, int64_t at, F f) {
  const int64_t channels = d.shape[1], height = d.shape[2], width = d.shape[3];
  const int64_t c = at % channels, w = at / channels % width, h = at / channels / width % height;
  const int64_t half = std::min(d.half, d.shape.Count());  // neighbours further away are outside
  double sum = 0;
  for (int64_t i = -half; i <= half; ++i) {
    if (d.across) {
      if (c + i >= 0 && c + i < channels) sum += f(at + i);
      continue;
    }
    for (int64_t j = -half; j <= half; ++j) {
      if (h + i < 0 || h + i >= height || w + j < 0 || w + j >= width) continue;
      sum += f(at + (i * width + j) * channels);
    }
  }
  return sum;
}

TEST_P(NormTest, LrnAndItsGradientAreThoseOfTheFormula) {
  for (LrnDesc d :
       {LrnDesc{.shape = {2, 12, 5, 4}}, LrnDesc{.shape = {2, 12, 5, 4}, .half = 1},
        LrnDesc{.shape = {1, 6, 3, 2}, .half = 20, .beta = 0.5f}, LrnDesc{.shape = {1, 1030, 2, 1}},
        LrnDesc{.shape = {1, 1030, 3, 3}, .half = 3}, LrnDesc{.shape = {1, 4100, 1, 1}},
        LrnDesc{.shape = {2, 12, 5, 4}, .half = 3}, LrnDesc{.shape = {1, 2048, 1, 3}, .half = 4},
        LrnDesc{.shape = {2, 4, 30, 20}, .half = 4}, LrnDesc{.shape = {2, 12, 5, 4}, .half = 5},
        LrnDesc{.shape = {2, 3, 5, 4}, .half = int64_t{1} << 40},
        LrnDesc{.shape = {2, 3, 6, 5}, .across = false, .half = 1}}) {
    d.factor = 0.2f;
    d.dtype = GetParam();
    const auto plan = device_.NewLrn(d);
    const Values x = Values::Random(d.shape, d.dtype, 1), dy = Values::Random(d.shape, d.dtype, 2);
    const Values y = Values::Unset(d.shape, d.dtype), dx = Values::Unset(d.shape, d.dtype);
    GuardedBytes kept(plan->WorkspaceBytes()), scratch(plan->ScratchBytes());
    plan->Forward(x, y, kept.span());
    plan->Backward(x, dy, dx, kept.span(), scratch.span());
    const auto base = [&](int64_t at) {
      return d.k + d.factor * OverNeighbours(d, at, [&](int64_t n) { return double{x[n]} * x[n]; });
    };
    const Values want_y = Values::Unset(d.shape), want_dx = Values::Unset(d.shape);
    for (int64_t i = 0; i < x.size(); ++i) {
      const double norm = std::pow(base(i), -d.beta);
      const double shares = OverNeighbours(
          d, i, [&](int64_t n) { return dy[n] * x[n] * std::pow(base(n), -d.beta - 1); });
      want_y.Set(i, static_cast<float>(x[i] * norm));
      want_dx.Set(i, static_cast<float>(dy[i] * norm - 2 * d.factor * d.beta * x[i] * shares));
    }
    ExpectClose(y, want_y, Bound(), plan->kernel().c_str());
    ExpectClose(dx, want_dx, Bound(), plan->kernel().c_str());
    EXPECT_TRUE(kept.Intact() && scratch.Intact());
  }
}

// Runs one batch normalisation and the operations fused after it with a plan, and compares the
// result with the formula in double.
class BatchNormCase {
 public:
  BatchNormCase(const BatchNormDesc& desc, bool affine) : desc_(desc), affine_(affine) {}

  void Run(const Device& device) {
    const auto plan = device.NewBatchNorm(desc_);
    GuardedBytes kept(plan->WorkspaceBytes()), scratch(plan->ScratchBytes());
    const BatchNormStats at = plan->StatsIn(kept.span());
    if (desc_.stored) {
      const auto channels = static_cast<size_t>(rows_.length);
      WriteFloats(device, std::vector<float>(channels, kStoredMean), at.mean);
      WriteFloats(device, std::vector<float>(channels, kStoredVariance), at.inverse);
    } else {
      plan->Moments(x_, at, scratch.span());
    }
    BatchNormTensors in;
    in.x = x_;
    in.other = other_;
    in.y = y_;
    BatchNormGradients back;
    back.x = x_;
    back.y = y_;
    back.dy = dy_;
    back.dx = dx_;
    if (desc_.other) back.dother = dother_;
    if (affine_) {
      in.scale = back.scale = scale_.f32();
      in.shift = back.shift = shift_.f32();
      back.dscale = dscale_.f32();
      back.dshift = dshift_.f32();
    }
    plan->Forward(in, at);
    const std::vector<float> first = y_.ToVector();
    plan->Recompute(in, at);
    EXPECT_EQ(y_.ToVector(), first);
    plan->Backward(back, at, scratch.span());
    EXPECT_TRUE(kept.Intact() && scratch.Intact());
  }

  void ExpectFormula(float bound) const {
    const Values want_y = Values::Unset(desc_.shape), want_dx = Values::Unset(desc_.shape);
    const Values want_other = Values::Unset(desc_.shape);
    for (int64_t c = 0; c < rows_.length; ++c) {
      const Moments m = MomentsOf(c);
      const auto n = static_cast<double>(rows_.count);
      const double by = affine_ ? scale_[c] : 1.0;
      double sum_g = 0, sum_gz = 0;
      const auto z = [&](int64_t p) { return (x_[p] - m.mean) * m.inverse; };
      const auto g = [&](int64_t p) { return desc_.relu && !(y_[p] > 0) ? 0.0 : double{dy_[p]}; };
      for (int64_t r = 0; r < rows_.count; ++r) {
        const int64_t p = Place(r, c);
        const double v = z(p) * by + (affine_ ? shift_[c] : 0) + (desc_.other ? other_[p] : 0);
        want_y.Set(p, static_cast<float>(desc_.relu && v < 0 ? 0 : v));
        want_other.Set(p, static_cast<float>(g(p)));
        sum_g += g(p);
        sum_gz += g(p) * z(p);
      }
      for (int64_t r = 0; r < rows_.count; ++r) {
        const int64_t p = Place(r, c);
        const double moments = desc_.stored ? 0 : sum_g / n + z(p) * sum_gz / n;
        want_dx.Set(p, static_cast<float>((g(p) - moments) * m.inverse * by));
      }
      EXPECT_NEAR(dscale_[c], affine_ ? 1 + sum_gz : 1, bound * n) << c;
      EXPECT_NEAR(dshift_[c], affine_ ? 2 + sum_g : 2, bound * n) << c;
    }
    ExpectClose(y_, want_y, bound, "y");
    ExpectClose(dx_, want_dx, bound, "dx");
    if (desc_.other) ExpectClose(dother_, want_other, bound, "dother");
  }

 private:
  static constexpr float kStoredMean = 0.25f, kStoredVariance = 0.5f;
  struct Moments {
    double mean, inverse;
  };

  int64_t Place(int64_t r, int64_t c) const { return rows_.Start(r) + c * rows_.inner; }
  Moments MomentsOf(int64_t c) const {
    double mean = kStoredMean, variance = kStoredVariance;
    if (!desc_.stored) {
      const auto n = static_cast<double>(rows_.count);
      mean = variance = 0;
      for (int64_t r = 0; r < rows_.count; ++r) mean += x_[Place(r, c)] / n;
      for (int64_t r = 0; r < rows_.count; ++r) {
        variance += std::pow(x_[Place(r, c)] - mean, 2) / n;
      }
    }
    return {mean, 1 / std::sqrt(variance + desc_.eps)};
  }

  BatchNormDesc desc_;
  bool affine_;
  Rows rows_ = AxisRows(desc_.shape, 1);
  Values x_ = Values::Random(desc_.shape, desc_.dtype, 1);
  Values other_ = Values::Random(desc_.shape, desc_.dtype, 2);
  Values dy_ = Values::Random(desc_.shape, desc_.dtype, 3);
  Values y_ = Values::Unset(desc_.shape, desc_.dtype),
         dx_ = Values::Unset(desc_.shape, desc_.dtype);
  Values dother_ = Values::Unset(desc_.shape, desc_.dtype);
  Values scale_ = Values::Random({rows_.length}, DType::kF32, 4);
  Values shift_ = Values::Random({rows_.length}, DType::kF32, 5);
  Values dscale_ = Values::Of({rows_.length}, std::vector<float>(rows_.length, 1));
  Values dshift_ = Values::Of({rows_.length}, std::vector<float>(rows_.length, 2));
};

TEST_P(NormTest, BatchNormAndItsGradientsAreThoseOfTheFormula) {
  for (const Shape& shape : {Shape{4, 20, 9, 7}, Shape{50, 6}, Shape{4, 3, 65}, Shape{1, 260, 3, 5},
                             Shape{90, 8}, Shape{3, 1, 22000}}) {
    for (int bits = 0; bits < 16; ++bits) {
      const bool stored = bits & 1, other = bits & 2, relu = bits & 4, affine = bits & 8;
      const BatchNormDesc desc{.shape = shape,
                               .stored = stored,
                               .other = other,
                               .relu = relu,
                               .backward_from_output = bits == 0,
                               .dtype = GetParam()};
      SCOPED_TRACE(testing::Message()
                   << shape.ToString() << (stored ? " stored" : "") << (other ? " other" : "")
                   << (relu ? " relu" : "") << (affine ? " affine" : ""));
      BatchNormCase tested(desc, affine);
      tested.Run(device_);
      tested.ExpectFormula(BoundOf(GetParam(), 1e-4f, 3e-2f));
    }
  }
}

TEST(NormDescTest, RefusesWhatMakesNoSense) {
  const Device* const device = &MetaDevice();
  EXPECT_THAT(
      [&] {
        device->NewSoftmax({.shape = {2, 3}, .axis = 2});
      },
      ThrowsMessage<Error>(HasSubstr("softmax: axis 2 of a shape of 2 axes")));
  EXPECT_THAT(
      [&] {
        device->NewLrn({.shape = {2, 3}});
      },
      ThrowsMessage<Error>(HasSubstr("it must be (N, C, H, W)")));
  EXPECT_THAT(
      [&] {
        device->NewLrn({.shape = {2, 3, 4, 4}, .half = -1});
      },
      ThrowsMessage<Error>(HasSubstr("LRN: the number of neighbours on a side is -1")));
  EXPECT_THAT([&] { device->NewBatchNorm({.shape = {3}}); },
              ThrowsMessage<Error>(HasSubstr("batch normalisation: the number of axes is 1")));
  EXPECT_THAT(
      [&] {
        device->NewBatchNorm({.shape = {2, 3}, .eps = -1});
      },
      ThrowsMessage<Error>(HasSubstr("eps is -1; it must not be negative")));
  EXPECT_THAT(
      [&] {
        device->NewBatchNorm({.shape = {2, 3}, .relu = true, .backward_from_output = true});
      },
      ThrowsMessage<Error>(HasSubstr("x cannot be told from y")));
}

TEST(NormDescTest, CallsNameATensorOfAnotherShape) {
  const Device* const device = &MetaDevice();
  const auto plan = device->NewSoftmax({.shape = {2, 3}, .axis = 1});
  const Values x({2, 4}, DType::kF32), y({2, 3}, DType::kF32);
  EXPECT_THAT([&] { plan->Forward(x, y); },
              ThrowsMessage<Error>(HasSubstr("softmax planned for 2 3 (6) f32 got 2 4 (8) f32")));
}

// The terms of sums of powers of two, which are exact in any order and show each missing pixel.
struct PowerOfPixel {
  int64_t channels;
  HD SumPair operator()(int64_t at, int64_t first, int64_t c) const {
    const auto pixel = static_cast<int>((at - first) / channels);
    return {std::ldexp(1.0f, pixel), static_cast<float>(c)};
  }
};

TEST(NormSumsTest, EachPixelOfAChunkCountsOnce) {
  for (const int64_t pixels : {1, 2, 3, 8, 23}) {
    constexpr int64_t kChannels = 5;
    const PixelChunks in = {AxisRows(Shape{2 * pixels - 1, kChannels}, 1), 2, pixels};
    std::vector<float> sums(2 * 2 * kChannels, -1);
    cpu::SumPairs(in, PowerOfPixel{kChannels}, sums.data());
    for (int64_t chunk = 0; chunk < 2; ++chunk) {
      const int64_t own = pixels - chunk;  // the last chunk is shorter
      for (int64_t c = 0; c < kChannels; ++c) {
        const auto at = static_cast<size_t>(chunk * 2 * kChannels + c);
        EXPECT_EQ(sums[at], std::ldexp(1.0f, static_cast<int>(own)) - 1) << own << " pixels";
        EXPECT_EQ(sums[at + kChannels], static_cast<float>(own * c)) << own << " pixels";
      }
    }
  }
}

}  // namespace
}  // namespace trainer
