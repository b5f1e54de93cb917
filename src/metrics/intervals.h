#pragma once
// 95 % confidence intervals.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainer/metrics/metric_accumulator.h"

namespace trainer {

// Returns Wilson's score interval of a fraction of `records` independent records.
MetricValue::Interval WilsonInterval(double fraction, double records);

// How often each record is drawn in samples of all records with replacement (the bootstrap). The
// draws are a function of the number of records.
class Resamples {
 public:
  // Makes up to 1000 samples; fewer, or none, of very many records.
  explicit Resamples(size_t records);
  size_t size() const { return size_; }
  std::span<const uint8_t> Weights(size_t sample) const {
    return std::span(weights_).subspan(sample * records_, records_);
  }

 private:
  size_t records_, size_ = 0;
  std::vector<uint8_t> weights_;
};

// Returns the 2.5th and the 97.5th percentile of a metric's values in the samples. Values that are
// not numbers are left out; no interval without any.
std::optional<MetricValue::Interval> Percentiles(std::vector<double> values);

}  // namespace trainer
