// Tests the drawing of a net as a graph.

#include "trainer/analysis/summary/net_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "digits_run.h"
#include "support/error_of.h"
#include "support/net_text.h"
#include "support/scoped.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

NetGraph GraphOf(const NetSpec& spec, caffe::Phase phase = caffe::TRAIN) {
  const caffe::NetState state = StateOf(phase);
  return {FilterLayers(spec, state), PlanShapes(spec, state)};
}

TEST(NetGraphTest, DrawsSvgAndDot) {
  DigitsRun run;
  run.net += R"(layer { name: "a<&\"b" type: "ReLU" bottom: "ip" top: "ip" }
                layer { name: "x<y" type: "Silence" bottom: "ip" })";
  const std::string svg = GraphOf(run.LoadNet()).Svg("small");
  EXPECT_THAT(svg, StartsWith("<svg xmlns="));
  for (const char* line : {">InnerProduct 10</text>", ">16x10</text>", ">7,850 parameters</text>",
                           ">+ ReLU</text>", ">x&lt;y</text>", "prefers-color-scheme:dark"}) {
    EXPECT_THAT(svg, HasSubstr(line));
  }
  EXPECT_THAT(svg, Not(HasSubstr(">accuracy</text>")));
  const std::string dot = GraphOf(run.LoadNet(), caffe::TEST).Dot("small, phase TEST");
  EXPECT_THAT(dot, StartsWith("digraph \"small, phase TEST\" {\n"));
  EXPECT_THAT(dot, HasSubstr("label=\"accuracy\\nAccuracy\\nscalar\""));
  EXPECT_THAT(dot, HasSubstr("n0 -> n2 [label=\"label\"];"));
}

// Two edges cross the row of a wide box. Each is vertical there, in its own column.
TEST(NetGraphTest, LeadsEdgesAroundBoxes) {
  const std::string svg = GraphOf(NetFromText(R"(
    layer { name: "in" type: "Input" top: "in" input_param { shape { dim: 1 dim: 4 } } }
    layer { name: "a_name_that_makes_a_wide_box" type: "TanH" bottom: "in" top: "mid" }
    layer { name: "sum" type: "Eltwise" bottom: "in" bottom: "mid" top: "sum" })"))
                              .Svg("edges");
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

TEST(NetGraphTest, HasNoShapesWhereTheDatabaseIsMissing) {
  const DigitsRun run;
  std::filesystem::remove_all(run.folder() / "data");
  const NetSpec spec = run.LoadNet();
  EXPECT_THAT(PlanShapes(spec, StateOf(caffe::TRAIN)).why_not, HasSubstr("train_lmdb"));
  EXPECT_THAT(GraphOf(spec).Svg("small"), HasSubstr(">InnerProduct 10</text>"));
}

TEST(NetGraphTest, KnowsTheEndingsOfItsFormats) {
  for (const char* path : {"a.svg", "a.dot", "a.png", "a.pdf"}) EXPECT_TRUE(IsGraphFile(path));
  for (const char* path : {"a.gif", "svg", "a.svg.gz", ""}) EXPECT_FALSE(IsGraphFile(path)) << path;
}

// A fake `dot` writes its arguments.
TEST(NetGraphTest, GraphvizDrawsPngAndWithoutItTheDotFileStays) {
  const DigitsRun run;
  const TempFolder bin;
  const NetGraph graph = GraphOf(run.LoadNet());
  const std::string png = run.folder() / "net.png";
  const ScopedEnvironment path("PATH", bin.path());
  const auto [code, message] = ErrorOf([&] { WriteNetGraph(graph, "small", png); });
  EXPECT_EQ(code, ErrorCode::kUnavailable);
  EXPECT_THAT(message, HasSubstr("Install the package graphviz, then run: dot -Tpng -o "));
  EXPECT_THAT(ReadText(png + ".dot"), StartsWith("digraph \"small\""));
  EXPECT_FALSE(std::filesystem::exists(png));
  std::filesystem::permissions(bin.Write("dot", "#!/bin/sh\necho \"$1 $2\" > \"$3\"\n"),
                               std::filesystem::perms::all);
  WriteNetGraph(graph, "small", png);
  EXPECT_EQ(ReadText(png), "-Tpng -o\n");
  EXPECT_FALSE(std::filesystem::exists(png + ".dot"));
}

}  // namespace
}  // namespace trainer
