#include "trainer/metrics/metric_accumulator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "class_evaluator.h"
#include "number_sums.h"
#include "trainer/metrics/record_reader.h"

namespace trainer {

// What differs between the kinds of targets.
class MetricAccumulator::Kind {
 public:
  virtual ~Kind() = default;
  // Adds row number `number` of the test: the targets and the outputs.
  virtual void Add(int64_t number, std::span<const float> targets,
                   std::span<const float> outputs) = 0;
  virtual double Value(size_t metric) const = 0;
  virtual std::vector<double> Each(size_t metric) const = 0;
  // Returns Wilson's interval if the metric is a fraction of independent records.
  virtual std::optional<MetricValue::Interval> Exact(size_t) const { return std::nullopt; }
  // Returns the values of all metrics in the samples, [metric][sample].
  virtual std::vector<std::vector<double>> Resampled(const Resamples& samples) const = 0;
  virtual MetricCurves MakeCurves(size_t) const { return {}; }
};

namespace {

constexpr size_t kCurvePoints = 200;

using Sampled = std::vector<std::vector<double>>;

// Sorts by AUC and keeps the `most` lowest, then draws them.
template <class F>
std::vector<RankCurves> LowestCurves(const std::vector<int64_t>& columns, size_t most,
                                     const F& ranking_of) {
  std::vector<RankCurves> curves;
  for (const int64_t column : columns) {
    const Ranking ranking = ranking_of(column);
    RankCurves one{column, ranking.Auc(), ranking.AveragePrecision(), {}, {}};
    if (std::isnan(one.auc)) continue;
    one.roc = ranking.Roc(kCurvePoints);
    one.precision_recall = ranking.PrecisionRecall(kCurvePoints);
    curves.push_back(std::move(one));
  }
  std::ranges::stable_sort(curves, {}, &RankCurves::auc);
  curves.resize(std::min(curves.size(), most));
  std::ranges::sort(curves, {}, &RankCurves::column);
  return curves;
}

std::vector<CurvePoint> Reliability(std::span<const CalibrationBin> bins) {
  std::vector<CurvePoint> points;
  for (const CalibrationBin& bin : bins) {
    if (bin.records == 0) continue;
    points.push_back({bin.confidence / bin.records, bin.hits / bin.records});
  }
  return points;
}

// Records with one class each.
class ClassKind final : public MetricAccumulator::Kind {
 public:
  ClassKind(const Comparison& comparison, std::vector<MetricName> names, ClassEvaluator::Keep keep)
      : names_(std::move(names)), evaluator_(comparison.columns, keep, comparison.scores) {
    for (const MetricName& name : names_) of_.push_back(FindClassMetric(name.base));
  }

  void Add(int64_t number, std::span<const float> targets,
           std::span<const float> outputs) override {
    if (std::isnan(targets[0])) return;
    evaluator_.Add(number, outputs, static_cast<int64_t>(targets[0]));
  }
  double Value(size_t metric) const override {
    return evaluator_.Value(names_[metric], of_[metric]);
  }
  std::vector<double> Each(size_t metric) const override { return evaluator_.Each(names_[metric]); }
  std::optional<MetricValue::Interval> Exact(size_t metric) const override {
    const bool is_fraction = names_[metric].base == "accuracy" || names_[metric].k > 0;
    const double records = evaluator_.sums().records;
    if (!is_fraction || records == 0) return std::nullopt;
    return WilsonInterval(Value(metric), records);
  }
  Sampled Resampled(const Resamples& samples) const override {
    return evaluator_.Resampled(samples, names_, of_);
  }
  MetricCurves MakeCurves(size_t most) const override {
    const auto ranking_of = [&](int64_t column) { return evaluator_.RankingOf(column); };
    return {LowestCurves(evaluator_.RankedClasses(), most, ranking_of),
            Reliability(evaluator_.sums().bins)};
  }

 private:
  const std::vector<MetricName> names_;
  std::vector<ClassMetric> of_;  // null for metrics that rank
  ClassEvaluator evaluator_;
};

// Records with several labels: two classes for each label.
class LabelKind final : public MetricAccumulator::Kind {
 public:
  LabelKind(const Comparison& comparison, std::vector<MetricName> names, ClassEvaluator::Keep keep)
      : names_(std::move(names)), are_probabilities_(comparison.are_probabilities) {
    for (const MetricName& name : names_) of_.push_back(FindLabelMetric(name.base));
    for (int64_t i = 0; i < comparison.columns; ++i) evaluators_.emplace_back(2, keep);
  }

  void Add(int64_t number, std::span<const float> targets,
           std::span<const float> outputs) override {
    for (size_t i = 0; i < evaluators_.size(); ++i) {
      if (std::isnan(targets[i])) continue;
      const float one = outputs[i];
      // The softmax of (-x / 2, x / 2) is (1 - s(x), s(x)), with s the logistic function.
      const float scores[] = {are_probabilities_ ? 1 - one : -one / 2,
                              are_probabilities_ ? one : one / 2};
      evaluators_[i].Add(number, scores, static_cast<int64_t>(targets[i]));
    }
  }
  double Value(size_t metric) const override { return MeanOfDefined(Each(metric)); }
  std::vector<double> Each(size_t metric) const override {
    std::vector<double> values;
    for (const ClassEvaluator& one : evaluators_) {
      values.push_back(one.Value(names_[metric], of_[metric]));
    }
    return values;
  }
  std::optional<MetricValue::Interval> Exact(size_t metric) const override {
    const double records = evaluators_[0].sums().records;
    if (evaluators_.size() > 1 || names_[metric].base != "accuracy" || records == 0) {
      return std::nullopt;
    }
    return WilsonInterval(Value(metric), records);
  }
  Sampled Resampled(const Resamples& samples) const override {
    std::vector<Sampled> by_label;
    for (const ClassEvaluator& one : evaluators_) {
      by_label.push_back(one.Resampled(samples, names_, of_));
    }
    Sampled means(names_.size());
    for (size_t m = 0; m < names_.size(); ++m) {
      for (size_t sample = 0; sample < samples.size(); ++sample) {
        std::vector<double> values;
        for (const Sampled& label : by_label) {
          if (sample < label[m].size()) values.push_back(label[m][sample]);
        }
        means[m].push_back(MeanOfDefined(values));
      }
    }
    return means;
  }
  MetricCurves MakeCurves(size_t most) const override {
    std::vector<int64_t> columns;
    std::vector<CalibrationBin> bins(ClassSums::kBins);
    for (const ClassEvaluator& one : evaluators_) {
      columns.push_back(static_cast<int64_t>(columns.size()));
      for (size_t i = 0; i < bins.size(); ++i) {
        bins[i].records += one.sums().bins[i].records;
        bins[i].confidence += one.sums().bins[i].confidence;
        bins[i].hits += one.sums().bins[i].hits;
      }
    }
    const auto ranking_of = [&](int64_t column) {
      return evaluators_[static_cast<size_t>(column)].RankingOf(1);
    };
    return {LowestCurves(columns, most, ranking_of), Reliability(bins)};
  }

 private:
  const std::vector<MetricName> names_;
  const bool are_probabilities_;
  std::vector<ClassMetric> of_;
  std::vector<ClassEvaluator> evaluators_;
};

// Records with numbers as targets.
class NumberKind final : public MetricAccumulator::Kind {
 public:
  NumberKind(int64_t columns, const std::vector<MetricName>& names, bool keeps)
      : columns_(static_cast<size_t>(columns)), keeps_(keeps), sums_(columns_) {
    for (const MetricName& name : names) of_.push_back(FindNumberMetric(name.base));
  }

  void Add(int64_t, std::span<const float> targets, std::span<const float> outputs) override {
    for (size_t i = 0; i < columns_; ++i) {
      sums_[i].Add(targets[i], outputs[i]);
      if (keeps_) kept_.push_back({targets[i], outputs[i]});
    }
  }
  double Value(size_t metric) const override { return MeanOfDefined(Each(metric)); }
  std::vector<double> Each(size_t metric) const override { return ValuesOf(sums_, of_[metric]); }
  Sampled Resampled(const Resamples& samples) const override {
    Sampled values(of_.size());
    if (!keeps_) return values;
    for (size_t sample = 0; sample < samples.size(); ++sample) {
      const std::span<const uint8_t> weights = samples.Weights(sample);
      std::vector<NumberSums> sums(columns_);
      for (size_t i = 0; i < kept_.size(); ++i) {
        sums[i % columns_].Add(kept_[i].target, kept_[i].output, weights[i / columns_]);
      }
      for (size_t m = 0; m < of_.size(); ++m) {
        values[m].push_back(MeanOfDefined(ValuesOf(sums, of_[m])));
      }
    }
    return values;
  }

 private:
  struct Pair {
    float target = 0, output = 0;
  };
  static std::vector<double> ValuesOf(const std::vector<NumberSums>& sums, NumberMetric of) {
    std::vector<double> values;
    for (const NumberSums& one : sums) values.push_back(of(one));
    return values;
  }

  const size_t columns_;
  const bool keeps_;
  std::vector<NumberMetric> of_;
  std::vector<NumberSums> sums_;
  std::vector<Pair> kept_;
};

std::unique_ptr<MetricAccumulator::Kind> MakeKind(const Comparison& comparison,
                                                  const MetricAccumulator::Options& options) {
  constexpr int64_t kMostResampledNumbers = 64;  // of a record; an image has many more
  std::vector<MetricName> names;
  ClassEvaluator::Keep keep{options.intervals && comparison.inner == 1, options.curves};
  for (const std::string& name : options.names) {
    names.push_back(ParseMetricName(name));
    keep.scores = keep.scores || names.back().ranks;
  }
  if (comparison.kind == TargetKind::kClasses) {
    return std::make_unique<ClassKind>(comparison, std::move(names), keep);
  }
  if (comparison.kind == TargetKind::kLabels) {
    return std::make_unique<LabelKind>(comparison, std::move(names), keep);
  }
  const bool resampled = keep.records && comparison.columns <= kMostResampledNumbers;
  return std::make_unique<NumberKind>(comparison.columns, names, resampled);
}

}  // namespace

MetricAccumulator::MetricAccumulator(const Comparison& comparison, Options options)
    : comparison_(comparison),
      options_(std::move(options)),
      kind_(MakeKind(comparison_, options_)) {}

MetricAccumulator::~MetricAccumulator() = default;

void MetricAccumulator::Add(std::span<const float> rows) {
  const auto width = static_cast<size_t>(RowWidth(comparison_));
  const auto columns = static_cast<size_t>(comparison_.columns);
  for (; rows.size() >= width; rows = rows.subspan(width)) {
    kind_->Add(rows_++, rows.first(width - columns), rows.subspan(width - columns, columns));
  }
}

std::vector<MetricValue> MetricAccumulator::Values() const {
  std::vector<MetricValue> values;
  const bool intervals = options_.intervals && comparison_.inner == 1 && rows_ > 1;
  bool resamples = false;
  for (size_t m = 0; m < options_.names.size(); ++m) {
    MetricValue value{options_.names[m], kind_->Value(m), std::nullopt, kind_->Each(m)};
    if (intervals) value.interval = kind_->Exact(m);
    resamples = resamples || (intervals && !value.interval);
    values.push_back(std::move(value));
  }
  if (!resamples) return values;
  const Sampled sampled = kind_->Resampled(Resamples(static_cast<size_t>(rows_)));
  for (size_t m = 0; m < values.size(); ++m) {
    if (!values[m].interval && std::isfinite(values[m].value)) {
      values[m].interval = Percentiles(sampled[m]);
    }
  }
  return values;
}

MetricCurves MetricAccumulator::MakeCurves(size_t most) const { return kind_->MakeCurves(most); }

}  // namespace trainer
