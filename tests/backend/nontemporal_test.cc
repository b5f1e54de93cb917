#include "trainer/backend/loops/nontemporal.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "cpu/channel_pairs.h"

namespace trainer {
namespace {

constexpr size_t kMost = 300;  // bytes

// Memory for a copy at any offset in a cache line, with room around it.
struct alignas(64) Bytes {
  std::array<std::byte, kMost + 192> all{};
};

// StreamCopy fills the first line, copies whole lines and then the rest. It writes nothing else.
TEST(NontemporalTest, CopiesAnyLengthToAnyMultipleOf16) {
  Bytes from;
  for (size_t i = 0; i < from.all.size(); ++i) from.all[i] = static_cast<std::byte>(1 + i % 251);
  for (size_t begin = 64; begin < 128; begin += 16) {
    for (size_t bytes = 0; bytes <= kMost; ++bytes) {
      Bytes to;
      StreamCopy(to.all.data() + begin, from.all.data() + 3, bytes);
      StreamFence();
      for (size_t i = 0; i < to.all.size(); ++i) {
        const bool is_inside = i >= begin && i < begin + bytes;
        ASSERT_EQ(to.all[i], is_inside ? from.all[i - begin + 3] : std::byte{0})
            << bytes << " bytes to offset " << begin << ", byte " << i;
      }
    }
  }
}

TEST(NontemporalTest, CopiesALine) {
  Bytes from, to;
  for (size_t i = 0; i < from.all.size(); ++i) from.all[i] = static_cast<std::byte>(1 + i % 251);
  StreamLine(to.all.data() + 80, from.all.data() + 5);
  StreamFence();
  for (size_t i = 0; i < to.all.size(); ++i) {
    EXPECT_EQ(to.all[i], i >= 80 && i < 144 ? from.all[i - 75] : std::byte{0}) << i;
  }
}

// A functor of MapPixels that depends on the position and on the channel.
struct TwicePlusChannel {
  const float* x;
  HD float operator()(int64_t at, int64_t c) const { return 2 * x[at] + static_cast<float>(c); }
};

// Batch norm's maps write large outputs past the caches, in blocks of several pixels or of a part
// of one.
TEST(NontemporalTest, MapPixelsWritesEveryNumberOfALargeOutput) {
  for (const int64_t channels : {24, 96, 512, 1040}) {
    const int64_t pixels = kStreamBytes / 4 / channels + 7, count = pixels * channels;
    ASSERT_TRUE(Streams(nullptr, 4 * count, 4 * channels));
    std::vector<float> x(static_cast<size_t>(count)), y(x.size(), -1);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1021);
    const PixelChunks all = BalancedChunks(Shape{pixels, channels});
    cpu::MapPixels(all, TwicePlusChannel{x.data()}, y.data(), true);
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(y[static_cast<size_t>(i)], TwicePlusChannel{x.data()}(i, i % channels))
          << channels << " channels, number " << i;
    }
  }
}

}  // namespace
}  // namespace trainer
