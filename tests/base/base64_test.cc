#include "trainer/base/text/base64.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

TEST(Base64Test, EveryLengthIsPadded) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("M"), "TQ==");
  EXPECT_EQ(Base64("Ma"), "TWE=");
  EXPECT_EQ(Base64("Man"), "TWFu");
  EXPECT_EQ(Base64("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace trainer
