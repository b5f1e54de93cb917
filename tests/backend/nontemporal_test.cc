#include "trainer/backend/loops/nontemporal.h"

#include <gtest/gtest.h>

#include <array>

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

}  // namespace
}  // namespace trainer
