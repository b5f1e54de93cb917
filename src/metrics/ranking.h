#pragma once
// Metrics of a ranking of records by score: how well a threshold divides positive from negative
// records.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/metrics/metric_accumulator.h"

namespace trainer {

// Records in the order of falling scores; equal scores form a group, which no threshold divides.
// NaN ranks last.
class Ranking {
 public:
  // `scores` and `positive` have an element for each record.
  Ranking(std::span<const float> scores, std::span<const uint8_t> positive);

  // The area under the ROC curve, i.e. the probability that a positive record ranks before a
  // negative one, a tie counting half. `weights` are the weights of the records, or empty for 1
  // each. Not a number without positive or without negative records.
  double Auc(std::span<const uint8_t> weights = {}) const;
  // The average precision: the sum over the thresholds of the precision times the increase of the
  // recall. Not a number without positive records.
  double AveragePrecision(std::span<const uint8_t> weights = {}) const;

  // Return the curves, with at most `most` points: false positive rate and true positive rate from
  // (0, 0) to (1, 1); recall and precision, by rising recall.
  std::vector<CurvePoint> Roc(size_t most) const;
  std::vector<CurvePoint> PrecisionRecall(size_t most) const;

 private:
  // Calls visit(positives, negatives) for each group, with the sums of the weights up to and with
  // this group.
  template <class F>
  void EachThreshold(std::span<const uint8_t> weights, F&& visit) const;

  std::vector<uint32_t> order_;                 // records, the highest score first
  std::vector<uint8_t> positive_, ends_group_;  // by place in order_
};

}  // namespace trainer
