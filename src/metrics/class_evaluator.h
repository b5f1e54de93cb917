#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "class_sums.h"
#include "intervals.h"
#include "ranking.h"
#include "trainer/metrics/metric_names.h"

namespace trainer {

// Metrics of records with one of several classes each.
class ClassEvaluator {
 public:
  struct Keep {
    bool records = false;  // for Resampled
    bool scores = false;   // for auc and ap
  };
  ClassEvaluator(int64_t classes, Keep keep, ScoreKind kind = ScoreKind::kByValues)
      : sums_(classes), keep_(keep), kind_(kind) {}

  // Adds row `row` of the test with its scores.
  void Add(int64_t row, std::span<const float> scores, int64_t label);

  const ClassSums& sums() const { return sums_; }
  // Returns the metric; `of` computes it, or is null for auc and ap.
  double Value(const MetricName& name, ClassMetric of) const;
  // Returns the metric for each class, if it is defined for one; with two classes auc and ap have
  // only class 1.
  std::vector<double> Each(const MetricName& name) const;
  // Returns the values of several metrics for each sample of the rows, [metric][sample].
  std::vector<std::vector<double>> Resampled(const Resamples& samples,
                                             std::span<const MetricName> names,
                                             std::span<const ClassMetric> of) const;
  // The classes that are ranked against the others, and their rankings.
  std::vector<int64_t> RankedClasses() const;
  Ranking RankingOf(int64_t ranked_class) const;

 private:
  ClassSums sums_;
  const Keep keep_;
  const ScoreKind kind_;        // of the scores
  std::vector<uint32_t> rows_;  // of records_
  std::vector<ClassRecord> records_;
  std::vector<int32_t> labels_;        // with log_odds_
  std::vector<float> log_odds_;        // of each ranked class, by record
  std::vector<double> probabilities_;  // of the last record
};

// Returns the mean of the values that are numbers; not a number without any.
double MeanOfDefined(std::span<const double> values);

}  // namespace trainer
