#include "ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace trainer {
namespace {

constexpr double kNoRanking = std::numeric_limits<double>::quiet_NaN();

// Returns at most about `most` points of a curve: the first, the last, and points between them with
// equal distances along the curve's longer axis.
std::vector<CurvePoint> Thin(const std::vector<CurvePoint>& points, size_t most) {
  if (points.size() <= most) return points;
  std::vector<CurvePoint> thinned = {points.front()};
  const double step = 2.0 / static_cast<double>(most - 2);
  for (size_t i = 1; i + 1 < points.size(); ++i) {
    const CurvePoint &last = thinned.back(), &point = points[i];
    if (std::abs(point.x - last.x) + std::abs(point.y - last.y) >= step) thinned.push_back(point);
  }
  thinned.push_back(points.back());
  return thinned;
}

}  // namespace

Ranking::Ranking(std::span<const float> scores, std::span<const uint8_t> positive) {
  const auto key = [&](uint32_t record) {
    const float score = scores[record];
    return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
  };
  order_.resize(scores.size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::ranges::stable_sort(order_, [&](uint32_t a, uint32_t b) { return key(a) > key(b); });
  positive_.reserve(order_.size());
  ends_group_.reserve(order_.size());
  for (size_t i = 0; i < order_.size(); ++i) {
    positive_.push_back(positive[order_[i]]);
    ends_group_.push_back(i + 1 == order_.size() || key(order_[i]) != key(order_[i + 1]) ? 1 : 0);
  }
}

template <class F>
void Ranking::EachThreshold(std::span<const uint8_t> weights, F&& visit) const {
  double positives = 0, negatives = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    const double weight = weights.empty() ? 1 : weights[order_[i]];
    (positive_[i] != 0 ? positives : negatives) += weight;
    if (ends_group_[i] != 0) visit(positives, negatives);
  }
}

double Ranking::Auc(std::span<const uint8_t> weights) const {
  double area = 0, positives = 0, negatives = 0;
  EachThreshold(weights, [&](double up, double right) {
    area += (right - negatives) * (up + positives) / 2;
    positives = up;
    negatives = right;
  });
  return positives == 0 || negatives == 0 ? kNoRanking : area / positives / negatives;
}

double Ranking::AveragePrecision(std::span<const uint8_t> weights) const {
  double sum = 0, positives = 0;
  EachThreshold(weights, [&](double up, double right) {
    if (up > positives) sum += (up - positives) * up / (up + right);
    positives = up;
  });
  return positives == 0 ? kNoRanking : sum / positives;
}

std::vector<CurvePoint> Ranking::Roc(size_t most) const {
  std::vector<CurvePoint> points = {{0, 0}};
  EachThreshold({}, [&](double up, double right) { points.push_back({right, up}); });
  const CurvePoint end = points.back();
  if (end.x == 0 || end.y == 0) return {};
  for (CurvePoint& point : points) point = {point.x / end.x, point.y / end.y};
  return Thin(points, most);
}

std::vector<CurvePoint> Ranking::PrecisionRecall(size_t most) const {
  std::vector<CurvePoint> points;
  double positives = 0;
  EachThreshold({}, [&](double up, double right) {
    points.push_back({up, up / (up + right)});
    positives = up;
  });
  if (positives == 0) return {};
  for (CurvePoint& point : points) point.x /= positives;
  return Thin(points, most);
}

}  // namespace trainer
