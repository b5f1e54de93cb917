// Tests charts and the report page about runs.

#include "trainer/monitor/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "support/temp_folder.h"
#include "trainer/monitor/chart.h"
#include "trainer/monitor/run_card.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Expects a closing tag for every opening tag.
void ExpectBalanced(const std::string& html) {
  for (const char* tag : {"svg", "table", "tr", "td", "th", "text", "div", "title", "style", "h2",
                          "figure", "details", "polyline", "circle", "html", "body"}) {
    const std::regex opened(std::string("<") + tag + "[ >]");
    const auto begin = std::sregex_iterator(html.begin(), html.end(), opened);
    EXPECT_EQ(static_cast<size_t>(std::distance(begin, std::sregex_iterator())),
              Count(html, std::string("</") + tag + ">"))
        << tag;
  }
}

Chart Falling() {
  Chart chart;
  chart.title = "loss <of> a & b";
  chart.series.push_back({"a", {{0, 2}, {100, 1}, {200, 0.5}}, 0});
  return chart;
}

TEST(ChartTest, PointsStandWhereTheAxesSay) {
  const std::string svg = ChartSvg(Falling());
  EXPECT_THAT(svg, HasSubstr("points=\"64.0,34.0 342.0,184.7 620.0,260.0\""));
  EXPECT_THAT(svg, AllOf(HasSubstr(">0</text>"), HasSubstr(">100</text>"), Not(HasSubstr(">-0<"))));
  EXPECT_THAT(svg, HasSubstr("loss &lt;of&gt; a &amp; b"));
  ExpectBalanced(svg);
}

TEST(ChartTest, ALogarithmicAxisHasPowersOfTen) {
  Chart chart = Falling();
  chart.logarithmic = true;
  chart.series[0].points = {{0, 100}, {1, 0.001}};
  const std::string svg = ChartSvg(chart);
  for (const char* tick : {">100<", ">1<", ">0.001<"}) EXPECT_THAT(svg, HasSubstr(tick));
  chart.series[0].points.push_back({2, 0});  // 0 has no logarithm
  EXPECT_THAT(ChartSvg(chart), Not(HasSubstr(">0.001<")));
}

// The axis ends a tenth above the second-largest value, where the outlier is drawn.
TEST(ChartTest, OneOutlierDoesNotStretchTheAxis) {
  Chart chart = Falling();
  chart.series[0].points = {{0, 70}, {1, 2}, {2, 1.5}, {3, 1}, {4, 0.5}, {5, 0}};
  const std::string svg = ChartSvg(chart);
  EXPECT_THAT(svg, HasSubstr("points=\"64.0,34.0 175.2,54.5 "));
  EXPECT_THAT(svg, HasSubstr(">above the axis: up to 70</text>"));
  chart.series[0].points[0].value = 3;
  EXPECT_THAT(ChartSvg(chart), Not(HasSubstr("above the axis")));
}

// The series has 61 ones and then 61 threes: each mean covers the last 20 of 122 points.
TEST(ChartTest, MeansAreDrawnOverPaleCurves) {
  Chart chart = Falling();
  chart.series[0].points.clear();
  for (int i = 0; i < 122; ++i) chart.series[0].points.push_back({1.0 * i, i < 61 ? 1.0 : 3.0});
  EXPECT_THAT(ChartSvg(chart), Not(HasSubstr("<g class=\"pale\">")));
  chart.series[0].smoothed = true;
  const std::string svg = ChartSvg(chart);
  EXPECT_THAT(svg, HasSubstr("<g class=\"pale\"><polyline"));
  EXPECT_EQ(Count(svg, "<polyline"), 2u);
  ExpectBalanced(svg);
}

TEST(ChartTest, OneValueAndNoValueAreDrawn) {
  Chart chart = Falling();
  chart.series[0].points = {{5, 1}};
  EXPECT_THAT(ChartSvg(chart), AllOf(HasSubstr("<circle"), Not(HasSubstr("nan"))));
  chart.series[0].points.clear();
  EXPECT_EQ(ChartSvg(chart), "");
}

TEST(ChartTest, ManyPointsAreThinnedButKeepTheirExtremes) {
  Chart chart = Falling();
  chart.series[0].points.clear();
  for (int i = 0; i < 100000; ++i)
    chart.series[0].points.push_back({1.0 * i, i == 777 ? 9.0 : 1.0});
  const std::string svg = ChartSvg(chart);
  EXPECT_LT(svg.size(), 40000u);
  EXPECT_THAT(svg, HasSubstr(",34.0"));  // the largest value, 9
}

TEST(ChartTest, AFileOfChartsStandsAlone) {
  const std::string file = ChartsFile({Falling(), Falling()});
  EXPECT_THAT(file,
              StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"600\""));
  EXPECT_THAT(file, HasSubstr("prefers-color-scheme:dark"));
  ExpectBalanced(file);
}

class PageTest : public testing::Test {
 protected:
  // Writes a run's folder and returns its metrics.
  RunMetrics Run(const std::string& name, const std::string& rate) {
    const std::string folder = folder_ / name;
    std::filesystem::create_directory(folder);
    WriteText(folder + "/metrics.jsonl",
              R"({"event": "start", "iter": 0, "max_iter": 100, "net": "<LeNet>", "records": 64}
{"event": "train", "iter": 0, "seconds": 1, "loss": 2.5, "rate": 0.01, "data_wait": 0.125, "images_per_second": 640}
{"event": "ranks", "iter": 50, "seconds": 2, "computing": 0.75, "exchange": 0.25, "data": 0}
{"event": "test", "iter": 50, "seconds": 2, "net": 0, "outputs": {"accuracy": 0.875}}
{"event": "end", "iter": 100, "seconds": 3, "stopped_early": false}
)");
    WriteText(folder + "/solver.prototxt",
              "base_lr: " + rate + "\nmomentum: 0.9\nnet_param {\n  name: \"x\"\n}\n");
    return ReadRunMetrics(folder);
  }
  TempFolder folder_;
};

TEST_F(PageTest, NeedsNothingButItself) {
  const std::string page = ReportPage({Run("a", "0.01")});
  ExpectBalanced(page);
  EXPECT_THAT(page, HasSubstr("&lt;LeNet&gt;"));
  EXPECT_THAT(page, HasSubstr("<title>&lt;LeNet&gt;: a</title>"));
  EXPECT_THAT(page, HasSubstr("<b>accuracy 0.875 at 50</b>best test"));
  for (const char* title : {">loss<", ">accuracy<", "learning rate", "images per second",
                            "waiting for data", "how ranks spend their time"}) {
    EXPECT_THAT(page, HasSubstr(title));
  }
  for (const char* outside : {"src=\"http", "href=", "<script", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
}

// Iteration 0 has the highest accuracy, but its test used untrained weights.
TEST_F(PageTest, TheBestTestIsNotTheFirstAndNotTheLast) {
  RunMetrics run = Run("a", "0.01");
  run.tests[0] = {{.iter = 0, .outputs = {{"accuracy", 0.9}, {"loss", 1}}},
                  {.iter = 50, .outputs = {{"accuracy", 0.75}, {"loss", 2}}},
                  {.iter = 100, .outputs = {{"accuracy", 0.5}, {"loss", 0.5}}}};
  EXPECT_THAT(ReportPage({run}), HasSubstr("<b>accuracy 0.75 at 50</b>best test"));
  const std::string solver = run.path + "/solver.prototxt";
  WriteText(solver, "best_output: \"loss\"\n");
  EXPECT_THAT(ReportPage({run}), HasSubstr("<b>loss 0.5 at 100</b>best test"));
  WriteText(solver, "");
  for (MetricRow& row : run.tests[0]) row.outputs.erase(row.outputs.begin());
  EXPECT_THAT(ReportPage({run}), HasSubstr("<b>loss 0.5 at 100</b>best test"));
}

TEST_F(PageTest, DatesTheRunAndShowsItsDeviceNetAndSettings) {
  setenv("TZ", "UTC", 1);
  tzset();
  RunMetrics run = Run("a", "0.01");
  run.first_time = 1700000000;
  WriteText(run.path + "/environment.json", R"({"device": "CPU, 2 threads"})");
  const std::string page = ReportPage({run}, {{"<svg>net</svg>", 3, "431,080"}});
  ExpectBalanced(page);
  for (const char* card : {"<b>2023-11-14 22:13</b>started", "<b>CPU, 2 threads</b>device",
                           "<b>431,080</b>parameters", "<b>100 of 100, finished</b>iterations"}) {
    EXPECT_THAT(page, HasSubstr(card));
  }
  EXPECT_THAT(page,
              HasSubstr("<details open><summary>Net</summary>\n<div class=\"wide\"><svg>net"));
  EXPECT_THAT(page, HasSubstr("<tr><td>momentum</td><td>0.9</td></tr>"));
  EXPECT_THAT(ReportPage({run}, {{"<svg>net</svg>", 31, ""}}),
              HasSubstr("<details><summary>Net</summary>"));
}

// The screen of a phone is too narrow for twelve columns, so each cell shows its column's name.
TEST_F(PageTest, TheTableOfRunsNamesTheColumnInEachCell) {
  const std::string page = ReportPage({Run("a", "0.01"), Run("b", "0.1")});
  EXPECT_THAT(page, HasSubstr("<table class=\"stacked\">"));
  EXPECT_THAT(page, HasSubstr("<td data-label=\"best test\">accuracy 0.875 at 50</td>"));
  EXPECT_THAT(page, HasSubstr("<title>&lt;LeNet&gt;: 2 runs</title>"));
}

TEST_F(PageTest, SeveralRunsShowWhatDiffers) {
  const std::string page = ReportPage({Run("a", "0.01"), Run("b", "0.1")});
  ExpectBalanced(page);
  EXPECT_THAT(page, HasSubstr("<tr><td>base_lr</td><td>0.01</td><td>0.1</td></tr>"));
  EXPECT_THAT(page, Not(HasSubstr("<td>momentum</td><td>0.9</td><td>")));
  EXPECT_THAT(page, HasSubstr("class=\"curve c1\""));
}

TEST_F(PageTest, TheTableOfASweepComesFirst) {
  const std::string page = ReportPage(
      {Run("a", "0.01")}, {}, {{"Trials of <s>", {"trial", "state"}, {{"7", "stopped at 1/9"}}}});
  ExpectBalanced(page);
  EXPECT_THAT(page, HasSubstr("<h2>Trials of &lt;s&gt;</h2>"));
  EXPECT_THAT(page, HasSubstr("<td data-label=\"state\">stopped at 1/9</td>"));
  ASSERT_THAT(page, HasSubstr("best test"));
  EXPECT_LT(page.find("stopped at 1/9"), page.find("best test"));
}

TEST_F(PageTest, ShowsWhatElseIsInTheFolder) {
  const RunMetrics run = Run("a", "0.01");
  const std::string png = std::string("\x89PNG\r\n\x1a\n") + "...";
  WriteText(run.path + "/filters.png", png);
  WriteText(run.path + "/environment.json",
            R"({"program": "trainer 1", "command": ["trainer", "a b"]})");
  WriteText(run.path + "/time.json", R"({"layers": [{"name": "conv1", "forward": {"median_ms": 1.5},
                                         "backward": {"median_ms": 2.5}}]})");
  WriteText(
      run.path + "/confusion.json",
      R"({"confusion": {"accuracy": 0.5, "classes": [{"class": 0, "name": "cat", "records": 2, "recall": 0.5},
                {"class": 1, "name": "dog", "records": 2, "recall": 0.5}],
                "matrix": [{"label": 0, "answer": 0, "count": 7}, {"label": 0, "answer": 1, "count": 3}]}})");
  const std::string page = ReportPage({run});
  ExpectBalanced(page);
  EXPECT_THAT(page, HasSubstr("data:image/png;base64,iVBORw0KGgouLi4="));
  EXPECT_THAT(page, HasSubstr("trainer a b"));
  EXPECT_THAT(page, HasSubstr("<td>conv1</td><td>4 ms</td>"));
  EXPECT_THAT(page, HasSubstr("<tr><td>3</td><td>cat</td><td>dog</td></tr>"));
  EXPECT_THAT(page, Not(HasSubstr("<td>7</td>")));
}

// 7,200 joules are 2 Wh.
TEST_F(PageTest, ShowsTheCard) {
  const RunMetrics run = Run("a", "0.01");
  EXPECT_THAT(ReportPage({run}), Not(HasSubstr("Run card")));
  RunCard card;
  card.starts.resize(1);
  CardStart& start = card.starts[0];
  start.info.host = "node<7>";
  start.seed = "42";
  start.seconds = 1800;
  start.records = 3600;
  start.data = {{"train", "a/train", 100, "100 records", true, "1f"}};
  start.energy = {{"node<7>", "package-0", 7200, ""}, {"node<7>", "GPU 1", 0, "no counter"}};
  WriteText(run.path + "/card.json", ToJson(card).ToString());
  const std::string page = ReportPage({run}, {}, {}, 400.0);
  ExpectBalanced(page);
  for (const char* row :
       {"<td>seed</td><td>42</td>", "<td>hours</td><td>0.500</td>",
        "<td>records</td><td>3600, 2.0 per second with tests and snapshots</td>",
        "<td>data</td><td>train: a/train, 100 records, checksum of all records 1f</td>",
        "<td>energy</td><td>2.000 Wh</td>", "<td>CO2</td><td>0.80 g</td>",
        "<td>energy not measured</td><td>node&lt;7&gt;, GPU 1: no counter</td>"}) {
    EXPECT_THAT(page, HasSubstr(row));
  }
  EXPECT_THAT(ReportPage({run}), Not(HasSubstr("CO2")));
  WriteText(run.path + "/card.json", "{");
  EXPECT_THAT(ReportPage({run}), Not(HasSubstr("Run card")));
}

TEST_F(PageTest, ShowsMetricsAndTheirCurves) {
  const RunMetrics run = Run("a", "0.01");
  WriteText(run.path + "/curves.json",
            R"({"of": "class", "columns": 3, "metrics": [
                {"name": "macro_f1", "value": 0.71236, "low": 0.6, "high": 0.8},
                {"name": "kappa", "value": null}],
                "curves": [{"name": "<cat>", "auc": 0.9, "ap": 0.8, "roc": [[0, 0], [0.2, 0.7], [1, 1]],
                            "precision_recall": [[0.5, 1], [1, 0.4]]},
                           {"name": "dog", "auc": 0.95, "ap": 0.85, "roc": [[0, 0], [1, 1]],
                            "precision_recall": [[1, 0.4]]}],
                "reliability": [[0.45, 0.4], [0.95, 0.9]]})");
  const std::string page = ReportPage({run});
  ExpectBalanced(page);
  EXPECT_THAT(page, HasSubstr("<td>macro_f1</td><td>0.7124</td><td>0.6 to 0.8</td>"));
  EXPECT_THAT(page, HasSubstr("<td>kappa</td><td>-</td><td>-</td>"));
  for (const char* title : {"ROC", "Precision", "Right answers"}) {
    EXPECT_THAT(page, HasSubstr(std::string("aria-label=\"") + title + "\"")) << title;
  }
  EXPECT_THAT(page, HasSubstr("&lt;cat&gt; 0.9"));
  EXPECT_THAT(page, HasSubstr("The 2 classes with the lowest area under the ROC curve, of 3."));
  // The axes range from 0 to 1: (0.2, 0.7) is at a fifth of the width, and 0.3 below the top.
  EXPECT_THAT(page, HasSubstr("points=\"64.0,260.0 175.2,101.8 620.0,34.0\""));
}

TEST_F(PageTest, DamagedCurvesAreLeftOut) {
  const RunMetrics run = Run("a", "0.01");
  for (const char* text : {"{", "{}", R"({"metrics": 3, "curves": [{"roc": [[1], 2, "x"]}]})"}) {
    WriteText(run.path + "/curves.json", text);
    const std::string page = ReportPage({run});
    ExpectBalanced(page);
    EXPECT_THAT(page, Not(HasSubstr("<h3>Metrics</h3>"))) << text;
  }
}

TEST_F(PageTest, APictureIsAPngInTheFolderItself) {
  const RunMetrics run = Run("a", "0.01");
  WriteText(run.path + "/filters.png", "root:x:0:0:");
  WriteText(run.path + "/elsewhere", "\x89PNG\r\n\x1a\n...");
  std::filesystem::create_symlink("elsewhere", run.path + "/images.png");
  EXPECT_THAT(ReportPage({run}), Not(HasSubstr("data:image/png")));
}

TEST_F(PageTest, ShowsTheConfusionMatrixOfFewClasses) {
  const RunMetrics run = Run("a", "0.01");
  WriteText(
      run.path + "/confusion.json",
      R"({"confusion": {"accuracy": 0.5, "classes": [{"class": 0, "name": "<cat>"}, {"class": 1}],
                "matrix": [{"label": 0, "answer": 0, "count": 6}, {"label": 0, "answer": 1, "count": 2},
                           {"label": 9, "answer": 0, "count": 1}]}})");
  const std::string page = ReportPage({run});
  ExpectBalanced(page);
  EXPECT_THAT(page,
              HasSubstr("<tr><th>&lt;cat&gt;</th><td class=\"hit\" style=\"--share:75%\">6</td>"
                        "<td class=\"miss\" style=\"--share:25%\">2</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<tr><th>1</th><td></td><td></td></tr>"));
}

TEST_F(PageTest, ShowsTheWorstImagesWithLabelAndAnswer) {
  const RunMetrics run = Run("a", "0.01");
  WriteText(
      run.path + "/worst.json",
      R"({"pictures": [{"record": 17, "label": 7, "answer": 1, "loss": 3.21049, "confidence": 0.961,
                              "png": "UE5H"},
                             {"record": 3, "label": 2, "answer": 2, "label_name": "cat",
                              "answer_name": "cat", "loss": null, "confidence": 0.5, "png": "\"><b>"}]})");
  const std::string page = ReportPage({run});
  ExpectBalanced(page);
  EXPECT_THAT(page, HasSubstr("<img alt=\"7, classified as 1, 96 %, loss 3.21, record 17\" "
                              "src=\"data:image/png;base64,UE5H\">"));
  EXPECT_THAT(page, HasSubstr(">cat, correct<br>50 %, loss not finite<br>record 3<"));
  EXPECT_THAT(page, HasSubstr("base64,&quot;&gt;&lt;b&gt;\""));
}

}  // namespace
}  // namespace trainer
