#include "trainer/inference/evaluate/predictions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/label_rule.h"

namespace trainer {
namespace {

// Returns the predicted class for `count` scores with stride `step`: the label itself only if its
// score is higher than all others, and not NaN. See ReadPredictions.
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

// Sets loss and confidence. Scores that are not negative and sum to 1 are taken as probabilities;
// others are converted by softmax, with the highest score subtracted against overflow.
void SetLoss(const float* scores, int64_t count, int64_t step, Prediction* prediction) {
  constexpr double kNear = 1e-3;
  double highest = -std::numeric_limits<double>::infinity(), sum = 0;
  bool negative = false;
  for (int64_t c = 0; c < count; ++c) {
    const double score = scores[c * step];
    highest = std::max(highest, score);
    sum += score;
    negative = negative || score < 0;
  }
  const double own = scores[prediction->label * step], best = scores[prediction->predicted * step];
  if (!negative && std::abs(sum - 1) < kNear) {
    prediction->loss = -std::log(std::max(own, double{std::numeric_limits<float>::min()}));
    prediction->confidence = best;
    return;
  }
  double total = 0;
  for (int64_t c = 0; c < count; ++c) total += std::exp(scores[c * step] - highest);
  const double loss = std::log(total) + highest - own;
  prediction->loss = std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
  prediction->confidence = std::exp(best - highest) / total;
}

}  // namespace

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
    const float value = labels[i];
    const int label = rule.Read(value);
    if (label == kIgnoredLabel) continue;
    if (label == kBadLabel) {
      throw Error(ErrorCode::kData,
                  Join("label ", value, " in '", EscapeControl(batch.label_name),
                       "' is not a class: there are ", classes, ", 0 to ", classes - 1));
    }
    const auto row = static_cast<int64_t>(i);
    const float* first = scores.data() + row / inner * classes * inner + row % inner;
    Prediction prediction{row, label, ClassOf(first, classes, inner, label)};
    SetLoss(first, classes, inner, &prediction);
    predictions.push_back(prediction);
  }
  return predictions;
}

}  // namespace trainer
