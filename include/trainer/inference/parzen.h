#pragma once

#include <memory>
#include <span>
#include <vector>

#include "trainer/backend/device_floats.h"
#include "trainer/backend/gemm.h"

namespace trainer {

// How likely records are under normal distributions of one width around samples of a model:
//   log p(x) = log mean_i N(x; sample_i, sigma^2 I)
// (Breuleux, Bengio and Vincent, Neural Computation 23, 2011; Bengio and others, arXiv:1306.1091).
// Used by one thread.
class ParzenWindow {
 public:
  // `samples` on the host, (count, width). Records come at most `rows` at a time.
  ParzenWindow(const Device& device, std::span<const float> samples, int64_t width, int64_t rows);

  // The mean of log p over records (n, width), on the host, for each of `sigmas`.
  std::vector<double> MeanLogDensities(std::span<const float> records,
                                       std::span<const double> sigmas);

 private:
  const Device& device_;
  int64_t samples_, width_, rows_;
  DeviceFloats sample_values_, sample_squares_, records_, record_squares_, products_, densities_;
  std::unique_ptr<GemmPlan> product_;
  DeviceFloats scratch_;
};

}  // namespace trainer
