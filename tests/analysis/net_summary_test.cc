// Tests the table of a net's layers with shapes, parameters, work and memory.

#include "trainer/analysis/summary/net_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "digits_run.h"
#include "support/net_text.h"
#include "support/scoped.h"

namespace trainer {
namespace {

using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

NetSummary Summarize(const DigitsRun& run, const std::vector<std::string>& changes = {}) {
  return SummarizeNet(run.LoadNet(changes), StateOf(caffe::TRAIN));
}

bool HasRow(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex(pattern));
}

TEST(NetSummaryTest, PrintsShapesParametersAndWork) {
  const std::string text = ToText(Summarize(DigitsRun()));
  EXPECT_THAT(text, StartsWith("small: 3 layers\n"));
  // The layer has 784 * 10 weights and 10 biases, 16 * 784 * 10 multiply-adds, and 160 floats.
  EXPECT_TRUE(HasRow(text, R"(ip +InnerProduct +16x10 +7850 +0\.25 +640\n)")) << text;
  EXPECT_TRUE(HasRow(text, R"(together +7850 +0\.25)")) << text;
}

TEST(NetSummaryTest, SaysWhatIsStoredIn16Bits) {
  const NetSummary summary = Summarize(DigitsRun(), {"default_forward_type=BFLOAT16"});
  EXPECT_TRUE(HasRow(ToText(summary), R"(ip +InnerProduct +16x10 bf16 +7850)"));
  EXPECT_THAT(ToJson(summary).ToString(), HasSubstr("\"storage\": \"bf16\""));
}

TEST(NetSummaryTest, FitsTheColumnsWithWholeCells) {
  DigitsRun run;
  run.net =
      Edited(run.net, "name: \"ip\"", "name: \"a_long_name_of_a_layer_that_no_column_holds_ip\"");
  const NetSummary summary = Summarize(run);
  std::string narrow;
  {
    const ScopedEnvironment columns("COLUMNS", "60");
    narrow = ToText(summary);
  }
  EXPECT_TRUE(HasRow(narrow, R"(a_long\w+\.\.\w+_ip +ip 16x10 +7850 +0\.25)")) << narrow;
  EXPECT_THAT(narrow, HasSubstr("(not shown in 60 columns: type"));
  for (const std::string& line : SplitList(narrow.substr(0, narrow.find("MFLOP:")), '\n')) {
    EXPECT_LE(line.size(), 60u) << line;
  }
}

TEST(NetSummaryTest, PrintsJson) {
  const std::string text = ToJson(Summarize(DigitsRun())).ToString();
  EXPECT_THAT(text, StartsWith("{\n  \"net\": \"small\",\n  \"layers\": [\n"));
  EXPECT_THAT(text, HasSubstr("\"parameters\": 7850,\n      \"flop\": 250880,\n"));
  EXPECT_THAT(text, EndsWith("}\n"));
}

}  // namespace
}  // namespace trainer
