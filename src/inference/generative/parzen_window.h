#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/backend/primitives/gemm.h"

namespace trainer {

// A Parzen window density: normal distributions of one width around samples of a model,
//   log p(x) = log mean_i N(x; sample_i, sigma^2 I)
// (Breuleux, Bengio and Vincent, Neural Computation 23, 2011; Bengio et al., arXiv:1306.1091).
// Not thread-safe.
class ParzenWindow {
 public:
  // `samples`: (count, width) in host memory. MeanLogDensities processes at most `rows` records at
  // a time.
  ParzenWindow(const Device& device, std::span<const float> samples, int64_t width, int64_t rows);

  // Returns the mean of log p over `records`, (n, width) in host memory, for each width of the
  // normal distributions in `sigmas`.
  std::vector<double> MeanLogDensities(std::span<const float> records,
                                       std::span<const double> sigmas);

 private:
  const Device& device_;
  int64_t samples_, width_, rows_;
  DeviceFloats sample_values_, sample_squares_, records_, record_squares_, products_, densities_;
  std::unique_ptr<GemmPrimitive> product_;
  DeviceFloats scratch_;
};

}  // namespace trainer
