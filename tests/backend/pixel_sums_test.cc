// Tests sums over the pixels of each chunk and loops over pixels. A GPU splits a chunk into one
// part or several, and gives a block more pixels where there are few channels. A thread takes four
// channels if these are neighbours in memory and all arrays are aligned for that.

#include "trainer/backend/loops/pixel_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/test_device.h"

namespace trainer {
namespace {

// Returns integers, which 16 bits hold and whose sums are exact in any order. Each depends on
// `stat` and the channel.
template <class T, class X = const T*, class C = const float*>
struct Terms {
  X x;
  C of_channel, of_stat;
  HD float operator()(int64_t at, int64_t c, int64_t stat) const {
    return Load(x[at]) * of_channel[c] + of_stat[stat];
  }
  template <int V>
  HD auto Read(const Place& p) const {
    return Terms<T, Neighbours<T, V>, Neighbours<float, V>>{
        LoadVector<V>(x, p.at), LoadVector<V>(of_channel, p.c), LoadVector<V>(of_stat, p.stat)};
  }
  uintptr_t Addresses() const { return AddressOf(x) | AddressOf(of_channel) | AddressOf(of_stat); }
};

class PixelSumsTest : public testing::TestWithParam<Shape> {
 protected:
  static std::vector<float> Numbers(int64_t count) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i * 7 % 17 - 8));
    return numbers;
  }
  // Returns the same numbers on the device, after `skip` others.
  template <class T>
  OnDevice<T> Stored(int64_t count, int64_t skip) const {
    std::vector<T> stored(static_cast<size_t>(skip + count));
    const std::vector<float> numbers = Numbers(count);
    for (size_t i = 0; i < numbers.size(); ++i) {
      Store(stored[static_cast<size_t>(skip) + i], numbers[i]);
    }
    return OnDevice<T>(*device_, stored);
  }
  template <class T>
  static std::vector<float> Loaded(const OnDevice<T>& array, int64_t skip) {
    std::vector<float> numbers;
    for (const T value : array.Read()) numbers.push_back(Load(value));
    numbers.erase(numbers.begin(), numbers.begin() + skip);
    return numbers;
  }

  // Calls f(offset, stat, term) for each element.
  template <class F>
  void ForEachTerm(const PixelChunks& in, const F& f) const {
    const int64_t channels = in.rows.length;
    const std::vector<float> x = Numbers(GetParam().Count()), of_channel = Numbers(channels),
                             of_stat = Numbers(in.chunks * channels);
    for (int64_t r = 0; r < in.rows.count; ++r) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t at = in.rows.Start(r) + c * in.rows.inner;
        const int64_t stat = r / in.chunk_rows * channels + c;
        f(static_cast<size_t>(at), static_cast<size_t>(stat),
          Terms<float>{x.data(), of_channel.data(), of_stat.data()}(at, c, stat));
      }
    }
  }
  // Calls f(type, chunks, unaligned), where array number `unaligned` is not aligned to four
  // elements, if there is such an array.
  template <class F>
  void ForEachCase(const F& f) const {
    for (const DType type : StoredTypes()) {
      for (const PixelChunks& in : {PerItemChunks(GetParam()), BalancedChunks(GetParam())}) {
        for (const int unaligned : {-1, 0, 1, 2, 3}) {
          if (type != DType::kF32 && unaligned > 0)
            continue;  // these arrays hold floats for any type
          SCOPED_TRACE(std::string(NameOf(type)) + " " + std::to_string(unaligned));
          DispatchDtype(type, [&](auto tag) { f(tag, in, unaligned); });
        }
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
                                         Shape{2, 40, 31}, Shape{70, 36}, Shape{2, 132, 5, 9},
                                         Shape{1, 4, 90, 101}),
                         [](const auto& shape) {
                           std::string name;
                           for (int axis = 0; axis < shape.param.Rank(); ++axis) {
                             name += "_" + std::to_string(shape.param[axis]);
                           }
                           return name.substr(1);
                         });

TEST_P(PixelSumsTest, SumsEachChunkAndOverwritesWhatWasThere) {
  ForEachCase([&](auto tag, const PixelChunks& in, int unaligned) {
    using T = typename decltype(tag)::Type;
    const int64_t channels = in.rows.length, sums = in.chunks * channels;
    std::vector<float> want(static_cast<size_t>(sums));
    ForEachTerm(in, [&](size_t, size_t stat, float term) { want[stat] += term; });
    const int skip[] = {unaligned == 0, unaligned == 1, unaligned == 2, unaligned == 3};
    const auto x = Stored<T>(GetParam().Count(), skip[0]);
    const auto of_channel = Stored<float>(channels, skip[1]);
    const auto of_stat = Stored<float>(sums, skip[2]), out = Stored<float>(sums, skip[3]);
    SumChunks(*device_, in,
              Terms<T>{x.data() + skip[0], of_channel.data() + skip[1], of_stat.data() + skip[2]},
              out.data() + skip[3]);
    EXPECT_EQ(Loaded(out, skip[3]), want);
  });
}

TEST_P(PixelSumsTest, MapsEachElementInPlace) {
  ForEachCase([&](auto tag, const PixelChunks& in, int unaligned) {
    using T = typename decltype(tag)::Type;
    std::vector<float> want(static_cast<size_t>(GetParam().Count()));
    ForEachTerm(in, [&](size_t at, size_t, float term) { want[at] = term; });
    const int skip[] = {unaligned == 0, unaligned == 1, unaligned == 2};
    const auto x = Stored<T>(GetParam().Count(), skip[0]);
    const auto of_channel = Stored<float>(in.rows.length, skip[1]);
    const auto of_stat = Stored<float>(in.chunks * in.rows.length, skip[2]);
    T* const to = x.data() + skip[0];
    MapPixels(*device_, in, Terms<T>{to, of_channel.data() + skip[1], of_stat.data() + skip[2]},
              to);
    EXPECT_EQ(Loaded(x, skip[0]), want);
  });
}

}  // namespace
}  // namespace trainer
