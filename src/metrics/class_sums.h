#pragma once
// Sums over records with a class each, from which all metrics of classes follow except those that
// rank the records.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/metrics/predictions.h"

namespace trainer {

// What the metrics need of one record.
struct ClassRecord {
  int32_t label = 0, predicted = 0;
  int32_t above = 0;     // other classes with at least the label's score
  float confidence = 0;  // probability of the predicted class
  float brier = 0;       // see ClassSums
  float loss = 0;        // -log(probability of the label)
};

// Summarises one row of scores. ReadProbabilities has converted the scores to `probabilities`,
// which have one element for each class.
ClassRecord MakeClassRecord(std::span<const float> scores, std::span<const double> probabilities,
                            int64_t label, ScoreKind kind = ScoreKind::kByValues);

// One bin of the confidences.
struct CalibrationBin {
  double records = 0, confidence = 0, hits = 0;  // sums
};

struct ClassSums {
  // Counts of one class: records with this label, predictions of it, correct predictions.
  struct Counts {
    double labels = 0, predictions = 0, hits = 0;
  };
  static constexpr size_t kBins = 15;

  explicit ClassSums(int64_t num_classes) : classes(static_cast<size_t>(num_classes)) {}
  void Add(const ClassRecord& record, double weight = 1);

  std::vector<Counts> classes;
  double records = 0;
  std::vector<double> by_above;              // records by ClassRecord::above
  std::array<CalibrationBin, kBins> bins{};  // of equal width; a bin includes its upper end
  double brier = 0, loss = 0;
};

// Computes one metric. `k` is the number in a name such as top_5. Not a number where the metric is
// not defined.
using ClassMetric = double (*)(const ClassSums& sums, int k);

// Returns the metric of this name for records with one of several classes, or null. With two
// classes precision, recall and f1 are those of class 1, else means over the classes.
ClassMetric FindClassMetric(std::string_view name);
// Returns the metric of this name for records with a label that is 0 or 1, or null.
ClassMetric FindLabelMetric(std::string_view name);
// Returns precision, recall or f1 of each class; no elements for other names.
std::vector<double> EachClass(const ClassSums& sums, std::string_view name);

}  // namespace trainer
