#include "trainer/base/random/crc32c.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace trainer {
namespace {

using Function = uint32_t (*)(const void*, size_t, uint32_t);

class Crc32cTest : public testing::TestWithParam<Function> {
 protected:
  uint32_t Of(const std::string& text, uint32_t previous = 0) const {
    return GetParam()(text.data(), text.size(), previous);
  }
};
INSTANTIATE_TEST_SUITE_P(With, Crc32cTest, testing::Values(&Crc32c, &Crc32cPortable),
                         [](const auto& test) {
                           return std::string(test.param == &Crc32c ? "TheCpusBest" : "Tables");
                         });

// The vectors are from RFC 3720, appendix B.4, plus the usual check value.
TEST_P(Crc32cTest, MatchesThePublishedVectors) {
  std::string up(32, '\0'), down(32, '\0');
  std::iota(up.begin(), up.end(), 0);
  std::iota(down.rbegin(), down.rend(), 0);
  EXPECT_EQ(Of(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Of(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Of(up), 0x46dd794eu);
  EXPECT_EQ(Of(down), 0x113fdb5cu);
  EXPECT_EQ(Of("123456789"), 0xe3069283u);
  EXPECT_EQ(Of(""), 0u);
}

TEST_P(Crc32cTest, IsTheSameInPieces) {
  const std::string text = "The quick brown fox jumps over the lazy dog, again and again.";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(Of(text.substr(cut), Of(text.substr(0, cut))), Of(text)) << cut;
  }
}

TEST_P(Crc32cTest, AgreesWithTheOtherFunctionAtEveryLengthAndAlignment) {
  std::mt19937 random(7);
  std::vector<unsigned char> bytes(300);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
  for (size_t start = 0; start < 9; ++start) {
    for (size_t size = 0; start + size <= bytes.size(); size += 1 + size / 20) {
      EXPECT_EQ(GetParam()(bytes.data() + start, size, 5),
                Crc32cPortable(bytes.data() + start, size, 5));
    }
  }
}

TEST_P(Crc32cTest, SeesEveryFlippedBit) {
  const std::string good = "some forty bytes of text to be damaged..";
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(Of(bad), Of(good)) << bit;
  }
}

}  // namespace
}  // namespace trainer
