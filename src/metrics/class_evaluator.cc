#include "class_evaluator.h"

#include <cmath>
#include <limits>

#include "trainer/metrics/predictions.h"

namespace trainer {

double MeanOfDefined(std::span<const double> values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / count;
}

// Ranks by log(p / (1 - p)), which keeps its digits where p as a float would be rounded to 1.
void ClassEvaluator::Add(int64_t row, std::span<const float> scores, int64_t label) {
  probabilities_.resize(scores.size());
  ReadProbabilities(scores, probabilities_, kind_);
  const ClassRecord record = MakeClassRecord(scores, probabilities_, label, kind_);
  sums_.Add(record);
  if (keep_.records || keep_.scores) rows_.push_back(static_cast<uint32_t>(row));
  if (keep_.records) records_.push_back(record);
  if (!keep_.scores) return;
  labels_.push_back(static_cast<int32_t>(label));
  double all = 0;
  for (const double probability : probabilities_) all += probability;
  for (const int64_t c : RankedClasses()) {
    const double own = probabilities_[static_cast<size_t>(c)];
    double others = 0;  // summed instead of 1 - own, which has no digits left near own = 1
    if (own > 0.5) {
      for (size_t i = 0; i < probabilities_.size(); ++i) {
        if (i != static_cast<size_t>(c)) others += probabilities_[i];
      }
    } else {
      others = all - own;
    }
    log_odds_.push_back(static_cast<float>(std::log(own) - std::log(others)));
  }
}

std::vector<int64_t> ClassEvaluator::RankedClasses() const {
  const auto count = static_cast<int64_t>(sums_.classes.size());
  if (count == 2) return {1};
  std::vector<int64_t> classes;
  for (int64_t c = 0; c < count; ++c) classes.push_back(c);
  return classes;
}

Ranking ClassEvaluator::RankingOf(int64_t ranked_class) const {
  const size_t count = sums_.classes.size() == 2 ? 1 : sums_.classes.size();
  const size_t column = count == 1 ? 0 : static_cast<size_t>(ranked_class);
  std::vector<float> scores;
  std::vector<uint8_t> positive;
  for (size_t i = 0; i < labels_.size(); ++i) {
    scores.push_back(log_odds_[i * count + column]);
    positive.push_back(labels_[i] == ranked_class ? 1 : 0);
  }
  return Ranking(scores, positive);
}

double ClassEvaluator::Value(const MetricName& name, ClassMetric of) const {
  return of != nullptr ? of(sums_, name.k) : MeanOfDefined(Each(name));
}

std::vector<double> ClassEvaluator::Each(const MetricName& name) const {
  if (!name.ranks) return EachClass(sums_, name.base);
  std::vector<double> values;
  for (const int64_t c : RankedClasses()) {
    const Ranking ranking = RankingOf(c);
    values.push_back(name.base == "auc" ? ranking.Auc() : ranking.AveragePrecision());
  }
  return values;
}

std::vector<std::vector<double>> ClassEvaluator::Resampled(const Resamples& samples,
                                                           std::span<const MetricName> names,
                                                           std::span<const ClassMetric> of) const {
  constexpr size_t kMostRanked = 4'000'000'000;  // records in all samples, a few seconds
  std::vector<std::vector<double>> values(names.size());
  bool ranks = false;
  for (size_t sample = 0; sample < samples.size(); ++sample) {
    const std::span<const uint8_t> weights = samples.Weights(sample);
    ClassSums sums(static_cast<int64_t>(sums_.classes.size()));
    for (size_t i = 0; i < records_.size(); ++i) {
      if (weights[rows_[i]] != 0) sums.Add(records_[i], weights[rows_[i]]);
    }
    for (size_t m = 0; m < names.size(); ++m) {
      ranks = ranks || names[m].ranks;
      if (!names[m].ranks) values[m].push_back(of[m](sums, names[m].k));
    }
  }
  const std::vector<int64_t> classes = RankedClasses();
  if (!ranks || samples.size() * labels_.size() * classes.size() > kMostRanked) return values;
  std::vector<std::vector<double>> by_class[2];  // auc, ap: [sample][class]
  for (auto& one : by_class) one.resize(samples.size());
  std::vector<uint8_t> own(labels_.size());
  for (const int64_t c : classes) {
    const Ranking ranking = RankingOf(c);
    for (size_t sample = 0; sample < samples.size(); ++sample) {
      const std::span<const uint8_t> weights = samples.Weights(sample);
      for (size_t i = 0; i < own.size(); ++i) own[i] = weights[rows_[i]];
      by_class[0][sample].push_back(ranking.Auc(own));
      by_class[1][sample].push_back(ranking.AveragePrecision(own));
    }
  }
  for (size_t m = 0; m < names.size(); ++m) {
    if (!names[m].ranks) continue;
    for (const auto& one : by_class[names[m].base == "auc" ? 0 : 1]) {
      values[m].push_back(MeanOfDefined(one));
    }
  }
  return values;
}

}  // namespace trainer
