#include "trainer/metrics/predictions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/label_rule.h"

namespace trainer {
namespace {

// Returns the predicted class for `count` scores with stride `step`: the label itself only if its
// score is higher than all others, and not NaN. See Predict.
int64_t ClassOf(const float* scores, int64_t count, int64_t step, int64_t label) {
  const float own = scores[label * step];
  int64_t best = label;
  for (int64_t c = 0; c < count; ++c) {
    const float score = scores[c * step];
    if (c == label || score < own) continue;
    if (best == label || !(score <= scores[best * step])) best = c;
  }
  return best;
}

// The range and the sum of a row of scores. They tell whether the row is a distribution, and the
// softmax of other rows subtracts the highest score first, so that it does not overflow.
struct ScoreRange {
  double highest = -std::numeric_limits<double>::infinity(), sum = 0;
  bool negative = false;
  ScoreKind kind;

  ScoreRange(const float* scores, int64_t count, int64_t step, ScoreKind of_kind) : kind(of_kind) {
    for (int64_t c = 0; c < count; ++c) {
      const double score = scores[c * step];
      highest = std::max(highest, score);
      sum += score;
      negative = negative || score < 0;
    }
  }
  bool IsDistribution() const {
    constexpr double kNear = 1e-3;
    return kind == ScoreKind::kByValues && !negative && std::abs(sum - 1) < kNear;
  }
};

// Sets loss and confidence.
void SetLoss(const float* scores, int64_t count, int64_t step, ScoreKind kind,
             Prediction* prediction) {
  const ScoreRange range(scores, count, step, kind);
  const double own = scores[prediction->label * step], best = scores[prediction->predicted * step];
  if (range.IsDistribution()) {
    prediction->loss = -std::log(std::max(own, double{std::numeric_limits<float>::min()}));
    prediction->confidence = best;
    return;
  }
  double total = 0;
  for (int64_t c = 0; c < count; ++c) total += std::exp(scores[c * step] - range.highest);
  const double loss = std::log(total) + range.highest - own;
  prediction->loss = std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
  prediction->confidence = std::exp(best - range.highest) / total;
}

}  // namespace

Prediction Predict(const float* scores, int64_t count, int64_t step, int64_t label,
                   ScoreKind kind) {
  Prediction prediction{0, label, ClassOf(scores, count, step, label)};
  SetLoss(scores, count, step, kind, &prediction);
  return prediction;
}

void ReadProbabilities(std::span<const float> scores, std::span<double> probabilities,
                       ScoreKind kind) {
  const ScoreRange range(scores.data(), static_cast<int64_t>(scores.size()), 1, kind);
  if (range.IsDistribution()) {
    std::ranges::copy(scores, probabilities.begin());
    return;
  }
  double total = 0;
  for (size_t c = 0; c < scores.size(); ++c) {
    probabilities[c] = std::exp(scores[c] - range.highest);
    total += probabilities[c];
  }
  for (double& probability : probabilities) probability /= total;
}

std::vector<Prediction> ReadPredictions(const Net& net, const ScoredBatch& batch, int64_t classes) {
  const Shape& shape = batch.scores.shape;
  const bool fits = batch.axis < shape.Rank() && shape[batch.axis] == classes &&
                    batch.labels.Count() * classes == shape.Count();
  if (!fits) {
    throw Error(ErrorCode::kConfig,
                Join("labels '", EscapeControl(batch.label_name), "' of shape ",
                     batch.labels.shape.ToString(), " do not match the scores ", shape.ToString(),
                     " with the classes on axis ", batch.axis));
  }
  std::vector<float> scores(static_cast<size_t>(shape.Count()));
  std::vector<float> labels(static_cast<size_t>(batch.labels.Count()));
  net.ReadNchw(batch.scores, scores);
  net.ReadNchw(batch.labels, labels);
  const LabelRule rule{classes, batch.has_ignore, static_cast<int>(batch.ignore)};
  const int64_t inner = shape.Count(batch.axis + 1);
  std::vector<Prediction> predictions;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int label = rule.Read(labels[i]);
    if (label == kIgnoredLabel) continue;
    if (label == kBadLabel) ThrowNoClass(labels[i], batch.label_name, classes);
    const auto row = static_cast<int64_t>(i);
    const float* first = scores.data() + row / inner * classes * inner + row % inner;
    predictions.push_back(Predict(first, classes, inner, label));
    predictions.back().index = row;
  }
  return predictions;
}

void ThrowNoClass(float label, const std::string& blob, int64_t classes) {
  throw Error(ErrorCode::kData,
              Join("label ", label, " in '", EscapeControl(blob), "' is not a class: there are ",
                   classes, ", 0 to ", classes - 1));
}

}  // namespace trainer
