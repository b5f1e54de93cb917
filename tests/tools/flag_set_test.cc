// Flags bound to variables.

#include "trainer/cli/flag_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

using testing::ElementsAre;

TEST(FlagSetTest, ARepeatedFlagThatIsNotGivenKeepsItsDefault) {
  const auto parse = [](const std::vector<std::string>& arguments) {
    std::vector<std::string> values = {"a", "b"};
    FlagSet flags("verb");
    flags.Bind(&values, "each", "TEXT", "a text");
    flags.Parse(arguments);
    return values;
  };
  EXPECT_THAT(parse({}), ElementsAre("a", "b"));
  EXPECT_THAT(parse({"--each=c"}), ElementsAre("c"));
  EXPECT_THAT(parse({"--each=c", "--each", "d"}), ElementsAre("c", "d"));
  EXPECT_THAT(parse({"--each="}), ElementsAre(""));
}

}  // namespace
}  // namespace trainer
