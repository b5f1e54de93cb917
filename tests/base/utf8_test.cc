#include "trainer/base/text/utf8.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

TEST(Utf8Test, CharactersOfOneToFourBytesAreUtf8) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("plain"));
  EXPECT_TRUE(IsUtf8("gr\xc3\xbcn \xe2\x82\xac \xf0\x9f\x90\x88"));
  EXPECT_EQ(Utf8Length("\xe2\x82\xac and more"), 3u);
}

TEST(Utf8Test, OtherBytesAreNot) {
  for (const char* text : {"gr\xfcn", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                           "\xf4\x90\x80\x80", "\x80"}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

}  // namespace
}  // namespace trainer
