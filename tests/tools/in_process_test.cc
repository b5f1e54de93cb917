#include "in_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(RunHereTest, RefusesCommandsThatStartTheProgramAgain) {
  const std::vector<std::vector<std::string>> commands = {
      {"sweep", "--solver=none.prototxt"},         {"train", "--solver=none.prototxt", "--ranks=2"},
      {"train", "--ranks", "4", "--solver=x"},     {"find-lr", "-ranks=3", "--solver=x"},
      {"train", "--solver=x", "--gpu=0,1"},        {"bench-comm", "--ranks=2"},
      {"train", "--solver=x", "--ranks=2", "-v=1"}};
  for (const auto& command : commands) {
    EXPECT_THAT([&] { RunHere(command); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("use RunProgram")))
        << testing::PrintToString(command);
  }
}

TEST(RunHereTest, RunsOneRankAndPredictsSeveral) {
  const std::vector<std::vector<std::string>> commands = {
      {"train", "--solver=none.prototxt", "--ranks=1"},
      {"train", "--solver=none.prototxt", "--gpu=0"},
      {"plan", "--solver=none.prototxt", "--ranks=2"},
      {"job", "--solver=none.prototxt", "--gpu=0,1"}};
  for (const auto& command : commands) {
    EXPECT_NE(RunHere(command).exit_code, 0) << testing::PrintToString(command);
  }
}

}  // namespace
}  // namespace trainer
