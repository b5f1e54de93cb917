#include "trainer/base/text/lower_case.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

TEST(LowerCaseTest, ChangesLettersOfAsciiAlone) {
  EXPECT_EQ(LowerCase("JPEG, a@Z[9_"), "jpeg, a@z[9_");
  EXPECT_EQ(LowerCase("\xc3\x84\xff"), "\xc3\x84\xff");
}

}  // namespace
}  // namespace trainer
