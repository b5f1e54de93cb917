// The verbs that look at one net: show, draw, deploy.

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

TEST(DeployTest, TurnsDataToInputAndTheLossToProbabilities) {
  const Job job;
  job.Write();
  const Outcome outcome =
      RunIn(job, {"deploy", "--model=net.prototxt", "--out=deploy.prototxt", "--batch=3"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(ReadText(job.folder() / "deploy.prototxt"),
            R"(# To prepare images as its training did: trainer classify --scale=0.00390625
name: "small"
layer {
  name: "data"
  type: "Input"
  top: "data"
  input_param {
    shape {
      dim: 3
      dim: 1
      dim: 28
      dim: 28
    }
  }
}
layer {
  name: "ip"
  type: "InnerProduct"
  bottom: "data"
  top: "ip"
  inner_product_param {
    num_output: 10
  }
}
layer {
  name: "prob"
  type: "Softmax"
  bottom: "ip"
  top: "prob"
}
)");
  const Outcome again = RunIn(job, {"show", "--model=deploy.prototxt", "--phase=TEST"});
  EXPECT_TRUE(Finds(again.out, "prob +Softmax +3x10")) << again.out << again.err;
}

TEST(DeployTest, NeedsNoDataWhenTheShapeIsGiven) {
  const Job job;
  job.Write();
  std::filesystem::remove_all(job.folder() / "data");
  const Outcome given = RunIn(job, {"deploy", "--model=net.prototxt", "--shape=1,28,28"});
  EXPECT_EQ(given.exit_code, 0) << given.err;
  EXPECT_THAT(given.out, HasSubstr("dim: 28"));
  const Outcome without = RunIn(job, {"deploy", "--model=net.prototxt"});
  EXPECT_EQ(without.exit_code, 66);
  EXPECT_THAT(without.err, HasSubstr("give the shape of one item"));
  ExpectUsage(RunIn(job, {"deploy", "--model=net.prototxt", "--shape=1,x"}),
              "'x' is not a positive whole number");
}

TEST(DeployTest, KeepsTheHeaviestLossOnlyOrWhatIsAskedFor) {
  Job job;
  job.net += R"(layer { name: "side" type: "InnerProduct" bottom: "data" top: "side"
                        inner_product_param { num_output: 10 } }
                layer { name: "side_loss" type: "SoftmaxWithLoss" bottom: "side" bottom: "label"
                        top: "side_loss" loss_weight: 0.3 })";
  job.Write();
  const Outcome main = RunIn(job, {"deploy", "--model=net.prototxt"});
  EXPECT_THAT(main.out, HasSubstr("\"ip\""));
  EXPECT_THAT(main.out, Not(HasSubstr("side")));
  const Outcome side = RunIn(job, {"deploy", "--model=net.prototxt", "--output=side"});
  EXPECT_THAT(side.out, HasSubstr("\"side\""));
  EXPECT_THAT(side.out, Not(HasSubstr("\"ip\"")));
  const Outcome typo = RunIn(job, {"deploy", "--model=net.prototxt", "--output=syde"});
  ExpectRefused(job, typo, 78, "net.prototxt", "Did you mean 'side'?");
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
