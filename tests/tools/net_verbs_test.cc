// The verbs that look at one net: show, draw, deploy.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "job.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Outcome RunIn(const Job& job, const std::vector<std::string>& command) {
  return RunProgram(command, job.options());
}

void ExpectUsage(const Outcome& outcome, const std::string& part) {
  EXPECT_EQ(outcome.exit_code, 64);
  ASSERT_EQ(outcome.Errors().size(), 1u) << outcome.err;
  EXPECT_THAT(outcome.Errors()[0], HasSubstr(part));
}

TEST(ShowTest, PrintsShapesParametersAndWork) {
  const Job job;
  job.Write();
  const Outcome outcome = RunIn(job, {"show", "--model=net.prototxt"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("small: 3 layers\n"));
  // 784 * 10 weights and 10 offsets; 16 * 784 * 10 multiply-adds; 160 floats.
  EXPECT_TRUE(Finds(outcome.out, R"(ip +InnerProduct +16x10 +7850 +0\.25 +640\n)")) << outcome.out;
  EXPECT_TRUE(Finds(outcome.out, R"(together +7850 +0\.25)")) << outcome.out;
}

TEST(ShowTest, SaysWhatIsStoredIn16Bits) {
  const Job job;
  job.Write();
  const std::vector<std::string> command = {"show", "--model=net.prototxt", "--set",
                                            "default_forward_type=BFLOAT16"};
  const Outcome outcome = RunIn(job, command);
  EXPECT_TRUE(Finds(outcome.out, R"(ip +InnerProduct +16x10 bf16 +7850)")) << outcome.out;
  std::vector<std::string> as_json = command;
  as_json.push_back("--json");
  EXPECT_THAT(RunIn(job, as_json).out, HasSubstr("\"storage\": \"bf16\""));
}

// Lines of `text` that are longer than `width`.
std::vector<std::string> TooLong(const std::string& text, size_t width) {
  std::vector<std::string> found;
  for (const std::string& line : SplitList(text, '\n')) {
    if (line.size() > width) found.push_back(line);
  }
  return found;
}

TEST(ShowTest, FitsTheColumnsWithWholeCells) {
  Job job;
  job.net =
      Edited(job.net, "name: \"ip\"", "name: \"a_long_name_of_a_layer_that_no_column_holds_ip\"");
  job.Write();
  RunOptions narrow = job.options();
  narrow.env.push_back("COLUMNS=60");
  const Outcome outcome = RunProgram({"show", "--model=net.prototxt"}, narrow);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(Finds(outcome.out, R"(a_long\w+\.\.\w+_ip +ip 16x10 +7850 +0\.25)")) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("(not shown in 60 columns: type"));
  EXPECT_THAT(TooLong(outcome.out.substr(0, outcome.out.find("MFLOP:")), 60), IsEmpty());
  const Outcome piped = RunIn(job, {"show", "--model=net.prototxt"});
  EXPECT_THAT(piped.out, HasSubstr("a_long_name_of_a_layer_that_no_column_holds_ip  InnerProduct"));
}

TEST(ShowTest, PrintsJson) {
  const Job job;
  job.Write();
  const Outcome outcome = RunIn(job, {"show", "--model=net.prototxt", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("{\n  \"net\": \"small\",\n  \"layers\": [\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\"parameters\": 7850,\n      \"flop\": 250880,\n"));
  EXPECT_THAT(outcome.out, EndsWith("}\n"));
}

TEST(DrawTest, WritesSvgAndDot) {
  Job job;
  job.net += R"(layer { name: "a<&\"b" type: "ReLU" bottom: "ip" top: "ip" }
                layer { name: "x<y" type: "Silence" bottom: "ip" })";
  job.Write();
  const Outcome svg = RunIn(job, {"draw", "--model=net.prototxt", "--out=net.svg"});
  ASSERT_EQ(svg.exit_code, 0) << svg.err;
  EXPECT_EQ(svg.out, "net.svg: small, phase TRAIN, 5 layers\n");
  const std::string picture = ReadText(job.folder() / "net.svg");
  EXPECT_THAT(picture, StartsWith("<svg xmlns="));
  for (const char* line : {">InnerProduct 10</text>", ">16x10</text>", ">7,850 parameters</text>",
                           ">+ ReLU</text>", "prefers-color-scheme:dark"}) {
    EXPECT_THAT(picture, HasSubstr(line));
  }
  EXPECT_EQ(svg.err, "");
  EXPECT_THAT(picture, HasSubstr(">x&lt;y</text>"));
  EXPECT_THAT(picture, Not(HasSubstr(">accuracy</text>")));
  const Outcome dot = RunIn(job, {"draw", "--model=net.prototxt", "--phase=TEST", "--out=net.dot"});
  ASSERT_EQ(dot.exit_code, 0) << dot.err;
  const std::string graph = ReadText(job.folder() / "net.dot");
  EXPECT_THAT(graph, StartsWith("digraph \"small, phase TEST\" {\n"));
  EXPECT_THAT(graph, HasSubstr("label=\"accuracy\\nAccuracy\\nscalar\""));
  EXPECT_THAT(graph, HasSubstr("n0 -> n2 [label=\"label\"];"));
}

// Two edges cross the row of a wide box: each is vertical there, in a column of its own.
TEST(DrawTest, LeadsEdgesAroundBoxes) {
  const TempFolder folder;
  WriteText(folder / "net.prototxt", R"(
    layer { name: "in" type: "Input" top: "in" input_param { shape { dim: 1 dim: 4 } } }
    layer { name: "a_name_that_makes_a_wide_box" type: "TanH" bottom: "in" top: "mid" }
    layer { name: "sum" type: "Eltwise" bottom: "in" bottom: "mid" top: "sum" })");
  const Outcome outcome =
      RunProgram({"draw", "--model=net.prototxt", "--out=net.svg"}, {.folder = folder.path()});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string svg = ReadText(folder / "net.svg");
  const std::regex box("rect class=\"other\" x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\"");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(svg, found, box)) << svg;
  const double left = std::stod(found[1]), top = std::stod(found[2]);
  const double right = left + std::stod(found[3]);
  const std::regex vertical("([0-9.]+),([0-9.]+) L([0-9.]+),");
  int passing = 0;
  for (std::sregex_iterator edge(svg.begin(), svg.end(), vertical), end; edge != end; ++edge) {
    if (std::stod((*edge)[2]) != top) continue;
    const double x = std::stod((*edge)[3]);
    passing += x < left || x > right ? 1 : 0;
  }
  EXPECT_EQ(passing, 1) << svg;
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
  ExpectUsage(RunIn(job, {"draw", "--model=net.prototxt", "--out=net.png"}), ".svg or .dot");
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
