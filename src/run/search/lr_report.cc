#include "trainer/run/search/lr_report.h"

#include <algorithm>
#include <charconv>

#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/chart.h"

namespace trainer {
namespace {

using LrPoint = LrRangeTest::Point;

// Returns the number with at most `digits` significant digits.
std::string WithDigits(double value, int digits) {
  char text[48];
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits);
  return {text, end.ptr};
}
std::string ShortLr(const LrPoint& point) { return WithDigits(point.lr, 2); }

// Returns where the chart's axis of losses ends, because a loss that diverges would flatten the
// rest: as far above the first loss as the lowest one is below it.
double HighestShownLoss(const std::vector<LrPoint>& points) {
  const double first = points.front().smoothed;
  const double lowest = std::ranges::min_element(points, {}, &LrPoint::smoothed)->smoothed;
  return first + std::max(first - lowest, 1e-3);
}

}  // namespace

std::string LrAdvice(const LrRangeResult& result) {
  const std::vector<LrPoint>& points = result.points;
  const LrRangeTest::Advice found = LrRangeTest::FindAdvice(points);
  const LrPoint& lowest = points[found.lowest];
  const std::string end = ShortLr(points.back());
  if (!found.steepest) {
    return Join("No advice: the loss does not fall between the learning rates ",
                ShortLr(points.front()), " and ", end,
                ". Try another range (--from, --to), more --iterations or a larger batch; if the "
                "loss stays at its first value, check the data and the labels");
  }
  const std::string rate = ShortLr(points[*found.advised]);
  const std::string why = found.advised == found.steepest
                              ? "where the loss falls fastest"
                              : Join("a tenth of ", ShortLr(points[found.highest]),
                                     ", up to which the loss stays low; the loss falls fastest at ",
                                     ShortLr(points[*found.steepest]));
  std::string text = Join("Advice: base_lr: ", rate, ", ", why, "; the lowest loss is ",
                          WithDigits(lowest.smoothed, 3), ", at ", ShortLr(lowest));
  if (result.diverged) text += Join(", and diverges at ", end);
  if (found.still_falling && !result.diverged) {
    text += Join(", the end of the range, so try a --to above ", end);
  }
  return Join(text, ". Train with it: trainer train --solver=", EscapeControl(result.solver),
              " --set base_lr=", rate);
}

std::string LrTable(const LrRangeResult& result) {
  const std::vector<LrPoint>& points = result.points;
  constexpr size_t kRows = 20;
  const LrRangeTest::Advice found = LrRangeTest::FindAdvice(points);
  const size_t step = std::max<size_t>(1, points.size() / kRows);
  Table table({"iteration", "rate", "loss", "smoothed", "note"});
  for (size_t i = 0; i < points.size(); ++i) {
    const bool steepest = found.steepest == i, advised = found.advised == i,
               lowest = found.lowest == i, last = i + 1 == points.size();
    if (i % step != 0 && !steepest && !advised && !lowest && !last) continue;
    const char* note = steepest                  ? "falls steepest"
                       : advised                 ? "advised"
                       : lowest                  ? "lowest"
                       : last && result.diverged ? "diverged"
                                                 : "";
    table.Add({Join(i), WithDigits(points[i].lr, 3), WithDigits(points[i].loss, 4),
               WithDigits(points[i].smoothed, 4), note});
    if (advised) table.MarkLastRow();
  }
  return table.ToString();
}

std::string ToText(const LrRangeResult& result) {
  return Join(LrTable(result), "\n", Wrap(LrAdvice(result), 0, 0, OutputColumns()), "\n");
}

std::string ToCsv(const LrRangeResult& result) {
  const std::vector<LrPoint>& points = result.points;
  std::string text = "iteration,rate,loss,smoothed\n";
  for (size_t i = 0; i < points.size(); ++i) {
    const LrPoint& point = points[i];
    text += Join(i, ",", WithDigits(point.lr, 6), ",", WithDigits(point.loss, 7), ",",
                 WithDigits(point.smoothed, 7), "\n");
  }
  return text;
}

std::string ToSvg(const LrRangeResult& result) {
  const std::vector<LrPoint>& points = result.points;
  Chart chart;
  chart.title = "Loss at rising learning rates";
  chart.x_label = "learning rate";
  chart.logarithmic_x = true;
  chart.highest = HighestShownLoss(points);
  ChartSeries losses{.name = "loss", .points = {}, .pale = true, .dots = false},
      smoothed{.name = "smoothed", .points = {}, .dots = false};
  double low = points.front().loss;
  for (const LrPoint& point : points) {
    losses.points.push_back({point.lr, point.loss});
    smoothed.points.push_back({point.lr, point.smoothed});
    low = std::min(low, point.loss);
  }
  chart.series = {std::move(losses), std::move(smoothed)};
  const auto mark = [&](const char* name, size_t at, int color) {
    const double lr = points[at].lr;
    chart.series.push_back({.name = Join(name, " ", ShortLr(points[at])),
                            .points = {{lr, low}, {lr, chart.highest}},
                            .color = color,
                            .dashed = true,
                            .dots = false});
  };
  const LrRangeTest::Advice found = LrRangeTest::FindAdvice(points);
  if (found.steepest) mark("falls steepest at", *found.steepest, 1);
  if (found.advised != found.steepest) mark("advised:", *found.advised, 2);
  return ChartsFile({chart});
}

Json ToJson(const LrRangeResult& result) {
  const std::vector<LrPoint>& points = result.points;
  const LrRangeTest::Advice found = LrRangeTest::FindAdvice(points);
  Json list = Json::Array();
  for (const LrPoint& point : points) {
    list.Push(Json::Object()
                  .Set("rate", point.lr)
                  .Set("loss", point.loss)
                  .Set("smoothed", point.smoothed));
  }
  return Json::Object()
      .Set("base_lr", found.advised ? Json(points[*found.advised].lr) : Json())
      .Set("steepest", found.steepest ? Json(points[*found.steepest].lr) : Json())
      .Set("lowest", points[found.lowest].lr)
      .Set("diverged", result.diverged)
      .Set("points", std::move(list));
}

}  // namespace trainer
