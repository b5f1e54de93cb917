#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/metrics/comparison.h"

namespace trainer {

// The value of a metric over all records. A value that is not defined for these records, such as
// the AUC if all have the same class, is not a number.
struct MetricValue {
  struct Interval {
    double low = 0, high = 0;
  };
  std::string name;
  double value = 0;                  // of several labels or numbers, or classes in turn: the mean
  std::optional<Interval> interval;  // of 95 % confidence
  std::vector<double> each;          // by class, label or number; empty if the metric has none
};

struct CurvePoint {
  double x = 0, y = 0;
};

// The curves of one class against the others, or of one label.
struct RankCurves {
  int64_t column = 0;
  double auc = 0, ap = 0;
  std::vector<CurvePoint> roc;               // false positive rate, true positive rate
  std::vector<CurvePoint> precision_recall;  // recall, precision
};

// Pictures of a test.
struct MetricCurves {
  std::vector<RankCurves> ranks;
  // For each bin of the confidence with records: its mean confidence, and the fraction of right
  // answers.
  std::vector<CurvePoint> reliability;
};

// Computes metrics over all records together, i.e. they are not means over batches. The result
// depends only on the records and their order.
class MetricAccumulator {
 public:
  struct Options {
    std::vector<std::string> names;  // without a MetricFault
    bool intervals = false;          // ignored if records have several rows
    bool curves = false;             // keep what MakeCurves needs
  };
  MetricAccumulator(const Comparison& comparison, Options options);
  ~MetricAccumulator();

  // Adds rows of RecordReader.
  void Add(std::span<const float> rows);
  // Returns the values in the order of the names. Intervals may take seconds: those of accuracy and
  // top_k are Wilson's, the others are bootstrap percentiles, and left out for millions of records.
  std::vector<MetricValue> Values() const;
  // Returns the curves of the `most` classes or labels with the lowest AUC.
  MetricCurves MakeCurves(size_t most) const;

  class Kind;

 private:
  const Comparison comparison_;
  const Options options_;
  std::unique_ptr<Kind> kind_;
  int64_t rows_ = 0;
};

}  // namespace trainer
