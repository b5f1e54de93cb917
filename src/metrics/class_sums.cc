#include "class_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace trainer {
namespace {

using Counts = ClassSums::Counts;

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

double RatioOr(double part, double whole, double otherwise) {
  return whole == 0 ? otherwise : part / whole;
}

// As in scikit-learn, a ratio without records is 0.
double PrecisionOf(const Counts& one) { return RatioOr(one.hits, one.predictions, 0); }
double RecallOf(const Counts& one) { return RatioOr(one.hits, one.labels, 0); }
double F1Of(const Counts& one) { return RatioOr(2 * one.hits, one.labels + one.predictions, 0); }
double OverlapOf(const Counts& one) {
  return RatioOr(one.hits, one.labels + one.predictions - one.hits, 0);
}

// The mean over the classes that occur among the labels or the predictions.
template <double (*of)(const Counts&)>
double MeanOverClasses(const ClassSums& sums, int) {
  double sum = 0, count = 0;
  for (const Counts& one : sums.classes) {
    if (one.labels + one.predictions == 0) continue;
    sum += of(one);
    ++count;
  }
  return RatioOr(sum, count, kUndefined);
}

template <double (*of)(const Counts&)>
double OfClass1(const ClassSums& sums, int) {
  return sums.records == 0 ? kUndefined : of(sums.classes[1]);
}

template <double (*of)(const Counts&)>
double OfClass1OrMean(const ClassSums& sums, int k) {
  return sums.classes.size() == 2 ? OfClass1<of>(sums, k) : MeanOverClasses<of>(sums, k);
}

double WeightedF1(const ClassSums& sums, int) {
  double sum = 0;
  for (const Counts& one : sums.classes) sum += one.labels * F1Of(one);
  return RatioOr(sum, sums.records, kUndefined);
}

double HitsOf(const ClassSums& sums) {
  double hits = 0;
  for (const Counts& one : sums.classes) hits += one.hits;
  return hits;
}

double Accuracy(const ClassSums& sums, int) {
  return RatioOr(HitsOf(sums), sums.records, kUndefined);
}

double TopAccuracy(const ClassSums& sums, int k) {
  double hits = 0;
  const size_t count = std::min(sums.by_above.size(), static_cast<size_t>(k));
  for (size_t above = 0; above < count; ++above) hits += sums.by_above[above];
  return RatioOr(hits, sums.records, kUndefined);
}

double BalancedAccuracy(const ClassSums& sums, int) {
  double sum = 0, count = 0;
  for (const Counts& one : sums.classes) {
    if (one.labels == 0) continue;
    sum += RecallOf(one);
    ++count;
  }
  return RatioOr(sum, count, kUndefined);
}

// The sums over the classes of labels * predictions, labels^2 and predictions^2.
struct Products {
  double both = 0, labels = 0, predictions = 0;

  explicit Products(const ClassSums& sums) {
    for (const Counts& one : sums.classes) {
      both += one.labels * one.predictions;
      labels += one.labels * one.labels;
      predictions += one.predictions * one.predictions;
    }
  }
};

// Source: J. Gorodkin, "Comparing two K-category assignments by a K-category correlation
// coefficient", Computational Biology and Chemistry 28 (2004).
double Mcc(const ClassSums& sums, int) {
  if (sums.records == 0) return kUndefined;
  const Products products(sums);
  const double all = sums.records * sums.records;
  const double scale = (all - products.predictions) * (all - products.labels);
  return RatioOr(HitsOf(sums) * sums.records - products.both, std::sqrt(scale), 0);
}

double Kappa(const ClassSums& sums, int) {
  const double expected = sums.records * sums.records - Products(sums).both;
  const double found = (sums.records - HitsOf(sums)) * sums.records;
  return expected == 0 ? kUndefined : 1 - found / expected;
}

// Source: C. Guo et al., "On calibration of modern neural networks", ICML 2017, equation 3.
double CalibrationError(const ClassSums& sums, int) {
  double sum = 0;
  for (const CalibrationBin& bin : sums.bins) sum += std::abs(bin.hits - bin.confidence);
  return RatioOr(sum, sums.records, kUndefined);
}

double BrierScore(const ClassSums& sums, int) {
  return RatioOr(sums.brier, sums.records, kUndefined);
}

double LogLoss(const ClassSums& sums, int) { return RatioOr(sums.loss, sums.records, kUndefined); }

constexpr std::pair<std::string_view, ClassMetric> kClassMetrics[] = {
    {"accuracy", Accuracy},
    {"top_", TopAccuracy},
    {"balanced_accuracy", BalancedAccuracy},
    {"precision", OfClass1OrMean<PrecisionOf>},
    {"recall", OfClass1OrMean<RecallOf>},
    {"f1", OfClass1OrMean<F1Of>},
    {"macro_precision", MeanOverClasses<PrecisionOf>},
    {"macro_recall", MeanOverClasses<RecallOf>},
    {"macro_f1", MeanOverClasses<F1Of>},
    {"weighted_f1", WeightedF1},
    {"mcc", Mcc},
    {"kappa", Kappa},
    {"mean_iou", MeanOverClasses<OverlapOf>},
    {"ece", CalibrationError},
    {"brier", BrierScore},
    {"log_loss", LogLoss}};

// A label has two classes, 0 and 1, and these metrics count class 1 alone. The mean is taken over
// the labels, not over the two classes.
constexpr std::pair<std::string_view, ClassMetric> kLabelMetrics[] = {
    {"precision", OfClass1<PrecisionOf>},
    {"recall", OfClass1<RecallOf>},
    {"f1", OfClass1<F1Of>},
    {"macro_precision", OfClass1<PrecisionOf>},
    {"macro_recall", OfClass1<RecallOf>},
    {"macro_f1", OfClass1<F1Of>},
    {"mean_iou", OfClass1<OverlapOf>}};

ClassMetric FindIn(std::span<const std::pair<std::string_view, ClassMetric>> table,
                   std::string_view name) {
  const auto found =
      std::ranges::find(table, name, &std::pair<std::string_view, ClassMetric>::first);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

ClassRecord MakeClassRecord(std::span<const float> scores, std::span<const double> probabilities,
                            int64_t label, ScoreKind kind) {
  const Prediction prediction =
      Predict(scores.data(), static_cast<int64_t>(scores.size()), 1, label, kind);
  ClassRecord record;
  record.label = static_cast<int32_t>(label);
  record.predicted = static_cast<int32_t>(prediction.predicted);
  const float own = scores[static_cast<size_t>(label)];
  double squares = 0;
  for (size_t c = 0; c < scores.size(); ++c) {
    const bool is_label = c == static_cast<size_t>(label);
    if (!is_label && !(scores[c] < own)) ++record.above;
    const double off = probabilities[c] - (is_label ? 1 : 0);
    squares += off * off;
  }
  // With two classes both terms are equal, and scikit-learn counts one.
  record.brier = static_cast<float>(scores.size() == 2 ? squares / 2 : squares);
  record.confidence = static_cast<float>(prediction.confidence);
  record.loss = static_cast<float>(prediction.loss);
  return record;
}

void ClassSums::Add(const ClassRecord& record, double weight) {
  classes[static_cast<size_t>(record.label)].labels += weight;
  classes[static_cast<size_t>(record.predicted)].predictions += weight;
  const double hits = record.label == record.predicted ? weight : 0;
  classes[static_cast<size_t>(record.label)].hits += hits;
  records += weight;
  const auto above = static_cast<size_t>(record.above);
  if (by_above.size() <= above) by_above.resize(above + 1);
  by_above[above] += weight;
  const double width = 1.0 / kBins;
  const double place = std::ceil(double{record.confidence} / width) - 1;
  const size_t bin = place > 0 ? std::min(static_cast<size_t>(place), kBins - 1) : 0;
  bins[bin].records += weight;
  bins[bin].confidence += weight * double{record.confidence};
  bins[bin].hits += hits;
  brier += weight * double{record.brier};
  loss += weight * double{record.loss};
}

ClassMetric FindClassMetric(std::string_view name) { return FindIn(kClassMetrics, name); }

ClassMetric FindLabelMetric(std::string_view name) {
  if (name == "top_" || name == "weighted_f1") return nullptr;
  const ClassMetric own = FindIn(kLabelMetrics, name);
  return own != nullptr ? own : FindIn(kClassMetrics, name);
}

std::vector<double> EachClass(const ClassSums& sums, std::string_view name) {
  double (*of)(const Counts&) = nullptr;
  if (name.ends_with("precision")) of = PrecisionOf;
  if (name.ends_with("recall")) of = RecallOf;
  if (name.ends_with("f1")) of = F1Of;
  if (name == "mean_iou") of = OverlapOf;
  std::vector<double> values;
  if (of == nullptr) return values;
  for (const Counts& one : sums.classes) {
    values.push_back(one.labels + one.predictions == 0 ? kUndefined : of(one));
  }
  return values;
}

}  // namespace trainer
