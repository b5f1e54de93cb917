// Tests sums over the pixels of each chunk and loops over pixels. A GPU splits a chunk into one
// part or several, and gives a block more pixels where there are few channels.

#include "trainer/backend/loops/pixel_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_device.h"

namespace trainer {
namespace {

// Returns integers, whose sums are exact in any order. Each depends on `stat` and the channel.
struct Terms {
  const float *x, *of_stat;
  HD float operator()(int64_t at, int64_t c, int64_t stat) const {
    return x[at] * static_cast<float>(c % 3 + 1) + of_stat[stat];
  }
};

class PixelSumsTest : public testing::TestWithParam<Shape> {
 protected:
  static std::vector<float> Numbers(int64_t count) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i * 7 % 5 - 2));
    return numbers;
  }
  // Calls f(offset, channel, stat, term) for each element.
  template <class F>
  void ForEachTerm(const PixelChunks& in, const F& f) const {
    const std::vector<float> x = Numbers(GetParam().Count());
    const int64_t channels = in.rows.length;
    const std::vector<float> of_stat = Numbers(in.chunks * channels);
    for (int64_t r = 0; r < in.rows.count; ++r) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t at = in.rows.Start(r) + c * in.rows.inner;
        const int64_t stat = r / in.chunk_rows * channels + c;
        f(static_cast<size_t>(at), static_cast<size_t>(stat),
          Terms{x.data(), of_stat.data()}(at, c, stat));
      }
    }
  }

  const std::unique_ptr<Device> device_ = MakeTestDevice();
};
INSTANTIATE_TEST_SUITE_P(Of, PixelSumsTest,
                         testing::Values(Shape{2, 40, 60, 30}, Shape{3, 5, 7}, Shape{2, 3, 600},
                                         Shape{300, 33}, Shape{1, 33, 1, 257}, Shape{2, 0, 3, 3},
                                         Shape{2, 3, 0, 3}, Shape{2, 1, 99, 101},
                                         Shape{2, 3, 80, 70}, Shape{3, 5, 13, 7}, Shape{2, 2, 9001},
                                         Shape{1, 1, 4099}, Shape{40, 5, 7}, Shape{3, 70, 2},
                                         Shape{2, 40, 31}),
                         [](const auto& shape) {
                           std::string name;
                           for (int axis = 0; axis < shape.param.Rank(); ++axis) {
                             name += "_" + std::to_string(shape.param[axis]);
                           }
                           return name.substr(1);
                         });

TEST_P(PixelSumsTest, SumsEachChunkAndOverwritesWhatWasThere) {
  for (const PixelChunks& in : {PerItemChunks(GetParam()), BalancedChunks(GetParam())}) {
    const int64_t sums = in.chunks * in.rows.length;
    std::vector<float> want(static_cast<size_t>(sums));
    ForEachTerm(in, [&](size_t, size_t stat, float term) { want[stat] += term; });
    const OnDevice<float> x(*device_, Numbers(GetParam().Count()));
    const OnDevice<float> of_stat(*device_, Numbers(sums)), out(*device_, Numbers(sums));
    SumChunks(*device_, in, Terms{x.data(), of_stat.data()}, out.data());
    EXPECT_EQ(out.Read(), want);
  }
}

TEST_P(PixelSumsTest, MapsEachElementInPlace) {
  for (const PixelChunks& in : {PerItemChunks(GetParam()), BalancedChunks(GetParam())}) {
    std::vector<float> want(static_cast<size_t>(GetParam().Count()));
    ForEachTerm(in, [&](size_t at, size_t, float term) { want[at] = term; });
    const OnDevice<float> x(*device_, Numbers(GetParam().Count()));
    const OnDevice<float> of_stat(*device_, Numbers(in.chunks * in.rows.length));
    MapPixels(*device_, in, Terms{x.data(), of_stat.data()}, x.data());
    EXPECT_EQ(x.Read(), want);
  }
}

}  // namespace
}  // namespace trainer
