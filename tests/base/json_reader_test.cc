#include "trainer/base/text/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/protobuf_maps.h"

namespace trainer {
namespace {

TEST(JsonReaderTest, ReadsMembersOfTheirTypeAndElseTheFallback) {
  TRAINER_READS_JSON();
  const auto json = ParseJsonObject(R"({"host": "a", "ranks": 2, "list": [1], "none": null,)"
                                    R"("saves": true, "names": ["a", "b"]})");
  ASSERT_TRUE(json.has_value());
  EXPECT_EQ(JsonText(*json, "host"), "a");
  EXPECT_EQ(JsonText(*json, "ranks"), "");
  EXPECT_EQ(JsonText(*json, "missing"), "");
  EXPECT_EQ(JsonNumber(*json, "ranks"), 2);
  EXPECT_EQ(JsonNumber(*json, "host", -1), -1);
  EXPECT_EQ(JsonNumber(*json, "missing"), 0);
  EXPECT_EQ(JsonInteger(*json, "ranks"), 2);
  EXPECT_EQ(JsonInteger(*json, "missing", -1), -1);
  EXPECT_EQ(JsonInteger(*json, "none", -1), -1);
  EXPECT_EQ(JsonInteger(*ParseJsonObject(R"({"n": 1e300})"), "n"), int64_t{1} << 53);
  EXPECT_EQ(JsonInteger(*ParseJsonObject(R"({"n": -2.6})"), "n"), -3);
  ASSERT_NE(JsonField(*json, "list"), nullptr);
  EXPECT_EQ(JsonField(*json, "list")->list_value().values_size(), 1);
  EXPECT_EQ(JsonField(*json, "missing"), nullptr);
  EXPECT_TRUE(JsonFlag(*json, "saves"));
  EXPECT_FALSE(JsonFlag(*json, "ranks"));
  EXPECT_FALSE(JsonFlag(*json, "missing"));
  EXPECT_THAT(JsonTexts(*json, "names"), testing::ElementsAre("a", "b"));
  EXPECT_TRUE(JsonTexts(*json, "host").empty());
  EXPECT_TRUE(JsonTexts(*json, "missing").empty());
}

TEST(JsonReaderTest, IsEmptyForTextThatIsNoObject) {
  for (const char* text : {"", "nothing", "[1, 2]", "{\"a\": ", "3"}) {
    EXPECT_FALSE(ParseJsonObject(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace trainer
