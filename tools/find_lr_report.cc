#include "find_lr_report.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using Point = LrRangeTest::Point;

// As many digits as are worth telling.
std::string Short(double value, int digits) {
  char text[48];
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits);
  return {text, end.ptr};
}
std::string Rate(const Point& point) { return Short(point.rate, 2); }

// A picture with the rate to the right, in powers of ten, and the loss upwards.
class Plot {
 public:
  explicit Plot(const std::vector<Point>& points) : points_(points) {
    left_ = std::log10(points.front().rate);
    right_ = std::log10(points.back().rate);
    // A loss that diverges would press all others flat: the scale ends above the first ones.
    const auto [low, high] = std::ranges::minmax(points, {}, &Point::smooth);
    const double room = points.front().smooth - low.smooth;
    low_ = low.smooth - 0.1 * room;
    high_ = std::min(high.smooth, points.front().smooth + std::max(room, 1e-3));
    if (high_ <= low_) high_ = low_ + 1;
  }

  double X(double rate) const {
    return kLeft + (std::log10(rate) - left_) / (right_ - left_) * kWide;
  }
  double Y(double loss) const {
    const double share = (std::clamp(loss, low_, high_) - low_) / (high_ - low_);
    return kTop + (1 - share) * kHigh;
  }
  std::string Curve(double Point::*value, const char* style) const {
    std::string at;
    for (const Point& point : points_) {
      at += Join(at.empty() ? "" : " ", Fixed(X(point.rate), 1), ",", Fixed(Y(point.*value), 1));
    }
    return Join("<polyline points=\"", at, "\" fill=\"none\" ", style, "/>\n");
  }
  // A line upwards at each power of ten, and some across, with their values.
  std::string Grid() const {
    std::string out;
    for (int power = static_cast<int>(std::ceil(left_ - 1e-6)); power <= right_ + 1e-6; ++power) {
      const double x = X(std::pow(10, power));
      out +=
          Line(x, kTop, x, kTop + kHigh) + Text(x, kTop + kHigh + 16, "middle", Join("1e", power));
    }
    for (int i = 0; i <= 4; ++i) {
      const double loss = low_ + (high_ - low_) * i / 4;
      out += Line(kLeft, Y(loss), kLeft + kWide, Y(loss)) +
             Text(kLeft - 6, Y(loss) + 4, "end", Short(loss, 3));
    }
    return out;
  }
  std::string Mark(const Point& point, const std::string& text) const {
    const double x = X(point.rate);
    return Join("<path d=\"M", Fixed(x, 1), ",", kTop, " v", kHigh,
                "\" stroke=\"#c03030\" stroke-dasharray=\"4 3\"/>\n") +
           Text(x, kTop - 6, "middle", text);
  }
  static std::string Text(double x, double y, const char* anchor, const std::string& text) {
    return Join("<text x=\"", Fixed(x, 1), "\" y=\"", Fixed(y, 1), "\" text-anchor=\"", anchor,
                "\">", text, "</text>\n");
  }

  static constexpr double kLeft = 60, kTop = 40, kWide = 620, kHigh = 320;

 private:
  static std::string Line(double x1, double y1, double x2, double y2) {
    return Join("<path d=\"M", Fixed(x1, 1), ",", Fixed(y1, 1), " L", Fixed(x2, 1), ",",
                Fixed(y2, 1), "\" stroke=\"#dddddd\"/>\n");
  }

  const std::vector<Point>& points_;
  double left_ = 0, right_ = 0, low_ = 0, high_ = 0;
};

}  // namespace

std::string LrReport::Advice() const {
  const LrRangeTest::Advice found = LrRangeTest::AdviceOf(points);
  const Point& lowest = points[found.lowest];
  const std::string end = Rate(points.back());
  if (!found.steepest) {
    return Join("No advice: the loss does not fall between the learning rates ",
                Rate(points.front()), " and ", end,
                ". Try another range (--from, --to), more --iterations or a larger batch; if the "
                "loss stays at its first value, check the data and the labels");
  }
  const std::string rate = Rate(points[*found.steepest]);
  std::string text =
      Join("Advice: base_lr: ", rate, ", where the loss falls fastest; the lowest loss is ",
           Short(lowest.smooth, 3), ", at ", Rate(lowest));
  if (diverged) text += Join(", and diverges at ", end);
  if (found.still_falling && !diverged) {
    text += Join(", the end of the range, so try a --to above ", end);
  }
  return Join(text, ". Train with it: trainer train --solver=", EscapeControl(solver),
              " --set base_lr=", rate);
}

std::string LrReport::ToTable() const {
  constexpr size_t kRows = 20;
  const LrRangeTest::Advice found = LrRangeTest::AdviceOf(points);
  const size_t step = std::max<size_t>(1, points.size() / kRows);
  Table table({"iteration", "rate", "loss", "smoothed", "note"});
  for (size_t i = 0; i < points.size(); ++i) {
    const bool steepest = found.steepest == i, lowest = found.lowest == i,
               last = i + 1 == points.size();
    if (i % step != 0 && !steepest && !lowest && !last) continue;
    const char* note = steepest           ? "falls steepest"
                       : lowest           ? "lowest"
                       : last && diverged ? "diverged"
                                          : "";
    table.Add({Join(i), Short(points[i].rate, 3), Short(points[i].loss, 4),
               Short(points[i].smooth, 4), note});
    if (steepest) table.MarkLastRow();
  }
  return table.ToString();
}

std::string LrReport::ToCsv() const {
  std::string text = "iteration,rate,loss,smoothed\n";
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& point = points[i];
    text += Join(i, ",", Short(point.rate, 6), ",", Short(point.loss, 7), ",",
                 Short(point.smooth, 7), "\n");
  }
  return text;
}

std::string LrReport::ToSvg() const {
  const Plot plot(points);
  const LrRangeTest::Advice found = LrRangeTest::AdviceOf(points);
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"420\" "
      "viewBox=\"0 0 720 420\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<title>Loss at rising learning rates</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  out += plot.Grid();
  out += plot.Curve(&Point::loss, "stroke=\"#b8c8dc\"");
  out += plot.Curve(&Point::smooth, "stroke=\"#1f4e8c\" stroke-width=\"2\"");
  if (found.steepest) {
    const Point& point = points[*found.steepest];
    out += plot.Mark(point, Join("falls steepest at ", Rate(point)));
  }
  out += Plot::Text(Plot::kLeft + Plot::kWide / 2, 410, "middle", "learning rate");
  return out + "</svg>\n";
}

Json LrReport::ToJson() const {
  const LrRangeTest::Advice found = LrRangeTest::AdviceOf(points);
  Json list = Json::Array();
  for (const Point& point : points) {
    list.Push(Json::Object()
                  .Set("rate", point.rate)
                  .Set("loss", point.loss)
                  .Set("smoothed", point.smooth));
  }
  return Json::Object()
      .Set("base_lr", found.steepest ? Json(points[*found.steepest].rate) : Json())
      .Set("lowest", points[found.lowest].rate)
      .Set("diverged", diverged)
      .Set("points", std::move(list));
}

}  // namespace trainer
