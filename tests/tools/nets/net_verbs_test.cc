// Commands that show one net: show, draw, deploy.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Outcome RunIn(const Job& job, const std::vector<std::string>& command) {
  return RunHere(command, job.options());
}

void ExpectUsage(const Outcome& outcome, const std::string& part) {
  EXPECT_EQ(outcome.exit_code, 64);
  ASSERT_EQ(outcome.Errors().size(), 1u) << outcome.err;
  EXPECT_THAT(outcome.Errors()[0], HasSubstr(part));
}

TEST(ShowTest, PrintsATableOrJson) {
  const Job job;
  job.Write();
  const Outcome outcome = RunIn(job, {"show", "--model=net.prototxt"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("small: 3 layers\n"));
  EXPECT_TRUE(Finds(outcome.out, R"(ip +InnerProduct +16x10 +7850 +0\.25 +640\n)")) << outcome.out;
  const Outcome json = RunIn(job, {"show", "--model=net.prototxt", "--phase=TEST", "--json",
                                   "--set", "default_forward_type=BFLOAT16"});
  EXPECT_THAT(json.out, StartsWith("{\n  \"net\": \"small\",\n  \"layers\": [\n"));
  EXPECT_THAT(json.out, HasSubstr("\"storage\": \"bf16\""));
}

TEST(DrawTest, WritesSvgAndDot) {
  const Job job;
  job.Write();
  const Outcome svg = RunIn(job, {"draw", "--model=net.prototxt", "--out=net.svg"});
  ASSERT_EQ(svg.exit_code, 0) << svg.err;
  EXPECT_EQ(svg.out, "net.svg: small, phase TRAIN, 3 layers\n");
  EXPECT_EQ(svg.err, "");
  EXPECT_THAT(ReadText(job.folder() / "net.svg"), StartsWith("<svg xmlns="));
  const Outcome dot = RunIn(job, {"draw", "--model=net.prototxt", "--phase=TEST", "--out=net.dot"});
  ASSERT_EQ(dot.exit_code, 0) << dot.err;
  EXPECT_THAT(ReadText(job.folder() / "net.dot"), StartsWith("digraph \"small, phase TEST\" {\n"));
}

TEST(DrawTest, DrawsWithoutShapesWhereTheDatabaseIsMissing) {
  Job job;
  job.Write();
  std::filesystem::remove_all(job.folder() / "data");
  const Outcome outcome = RunIn(job, {"draw", "--model=net.prototxt", "--out=net.svg"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, StartsWith("drawn without shapes: "));
  EXPECT_THAT(ReadText(job.folder() / "net.svg"), HasSubstr(">InnerProduct 10</text>"));
}

TEST(DrawTest, RefusesAnotherEndingAndAnUnknownBlob) {
  Job job;
  job.Write();
  ExpectUsage(RunIn(job, {"draw", "--model=net.prototxt", "--out=net.gif"}), ".svg or .dot");
  job.net += R"(layer { name: "r" type: "ReLU" bottom: "nowhere" top: "r" })";
  job.Write();
  const Outcome outcome = RunIn(job, {"draw", "--model=net.prototxt", "--out=net.svg"});
  ExpectRefused(job, outcome, 78, "net.prototxt:", "nowhere");
  EXPECT_THAT(job.Files("net.svg"), IsEmpty());
}

TEST(DeployTest, DoesNotReplaceAFileUnlessForced) {
  const Job job;
  job.Write();
  const std::vector<std::string> command = {"deploy", "--model=net.prototxt", "--out=net.prototxt"};
  const Outcome outcome = RunIn(job, command);
  ExpectRefused(job, outcome, 73, "net.prototxt", "--force");
  EXPECT_EQ(ReadText(job.folder() / "net.prototxt"), job.net);
}

}  // namespace
}  // namespace trainer
