#include "trainer/base/text.h"

#include <gtest/gtest.h>

#include "trainer/base/error.h"

namespace trainer {
namespace {

TEST(EscapeControlTest, WritesOutEveryControlCharacter) {
  EXPECT_EQ(EscapeControl("a\x1b[2Jb\nc\td\x7f"), "a\\x1b[2Jb\\x0ac\\x09d\\x7f");
  EXPECT_EQ(EscapeControl("\xc2\x9b"
                          "31m \xc3\xa4 \xc2"),
            "\\x9b31m \xc3\xa4 \xc2");
}

TEST(ErrorTest, ANameWithANewlineMakesNoSecondLineButAQuotedLineDoes) {
  const Error error(ErrorCode::kConfig, {"n.prototxt", 3}, "layer 'a\nb' is bad\n  line\n  ^");
  EXPECT_STREQ(error.what(), "n.prototxt:3: layer 'a\\x0ab' is bad\n  line\n  ^");
}

}  // namespace
}  // namespace trainer
