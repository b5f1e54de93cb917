#include "trainer/inference/confusion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/label_rule.h"

namespace trainer {
namespace {

// The class that `count` scores, `step` apart, stand for; see AnswersOf.
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

// Where the scores are probabilities already, they add up to 1.
void SetLoss(const float* scores, int64_t count, int64_t step, LabelAnswer* answer) {
  constexpr double kNear = 1e-3;
  double highest = -std::numeric_limits<double>::infinity(), sum = 0;
  bool negative = false;
  for (int64_t c = 0; c < count; ++c) {
    const double score = scores[c * step];
    highest = std::max(highest, score);
    sum += score;
    negative = negative || score < 0;
  }
  const double own = scores[answer->label * step], best = scores[answer->answer * step];
  if (!negative && std::abs(sum - 1) < kNear) {
    answer->loss = -std::log(std::max(own, double{std::numeric_limits<float>::min()}));
    answer->confidence = best;
    return;
  }
  double total = 0;
  for (int64_t c = 0; c < count; ++c) total += std::exp(scores[c * step] - highest);
  const double loss = std::log(total) + highest - own;
  answer->loss = std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
  answer->confidence = std::exp(best - highest) / total;
}

}  // namespace

void ConfusionMatrix::Add(int64_t label, int64_t answer) {
  ++classes_[static_cast<size_t>(label)].labels;
  ++classes_[static_cast<size_t>(answer)].answers;
  ++cells_[{label, answer}];
  ++total_;
  if (label != answer) return;
  ++classes_[static_cast<size_t>(label)].hits;
  ++hits_;
}

double ConfusionMatrix::MeanRecall() const {
  double sum = 0;
  int64_t present = 0;
  for (const ClassCounts& one : classes_) {
    if (one.labels == 0) continue;
    sum += one.recall();
    ++present;
  }
  return present == 0 ? 0 : sum / static_cast<double>(present);
}

int64_t ConfusionMatrix::Count(int64_t label, int64_t answer) const {
  const auto found = cells_.find({label, answer});
  return found == cells_.end() ? 0 : found->second;
}

std::vector<ConfusionMatrix::Cell> ConfusionMatrix::Cells() const {
  std::vector<Cell> cells;
  for (const auto& [key, count] : cells_) cells.push_back({key.first, key.second, count});
  return cells;
}

std::vector<ConfusionMatrix::Cell> ConfusionMatrix::Worst(size_t most) const {
  std::vector<Cell> cells = Cells();
  std::erase_if(cells, [](const Cell& cell) { return cell.label == cell.answer; });
  std::ranges::stable_sort(cells, std::greater(), &Cell::count);
  cells.resize(std::min(cells.size(), most));
  return cells;
}

std::vector<LabelAnswer> AnswersOf(const Net& net, const ScoredLabels& batch, int64_t classes) {
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
  net.ReadPlain(batch.scores, scores);
  net.ReadPlain(batch.labels, labels);
  const LabelRule rule{classes, batch.has_ignore, static_cast<int>(batch.ignore)};
  const int64_t inner = shape.Count(batch.axis + 1);
  std::vector<LabelAnswer> answers;
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
    LabelAnswer answer{row, label, ClassOf(first, classes, inner, label)};
    SetLoss(first, classes, inner, &answer);
    answers.push_back(answer);
  }
  return answers;
}

}  // namespace trainer
