#include "trainer/base/text/parse_number.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>

namespace trainer {
namespace {

TEST(ParseNumberTest, ReadsWholeTextsAlone) {
  EXPECT_EQ(ParseNumber<int>("17"), 17);
  EXPECT_EQ(ParseNumber<int>("-3"), -3);
  EXPECT_EQ(ParseNumber<double>("1e-3"), 0.001);
  EXPECT_EQ(ParseNumber<uint64_t>("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  for (const char* text : {"", " 1", "1 ", "1x", "x", "+1", "0x10", "1.5", "--1"}) {
    EXPECT_EQ(ParseNumber<int>(text), std::nullopt) << "'" << text << "'";
  }
}

TEST(ParseNumberTest, RefusesWhatTheTypeCannotHold) {
  EXPECT_EQ(ParseNumber<int32_t>("2147483648"), std::nullopt);
  EXPECT_EQ(ParseNumber<uint32_t>("-1"), std::nullopt);
  EXPECT_EQ(ParseNumber<double>("1e999"), std::nullopt);
}

}  // namespace
}  // namespace trainer
