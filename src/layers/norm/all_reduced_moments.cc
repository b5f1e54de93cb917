#include "norm/all_reduced_moments.h"

#include <algorithm>

namespace trainer {

// Sums twice: the first sum gives a mean that is exact except for rounding; the second gives the
// moments around it, and the error of the mean.
void AllReducedMoments::Join(const Device& device, float* mean, float* variance) {
  const size_t channels = host_.size() / 3, bytes = channels * sizeof(float);
  const auto replicas = static_cast<float>(replicas_.count);
  float *const means = host_.data(), *const variances = means + channels;
  const std::span<float> middle(variances + channels, channels);
  device.CopyToHost(means, mean, bytes);
  device.CopyToHost(variances, variance, bytes);
  std::copy_n(means, channels, middle.begin());
  replicas_.sum(middle);
  for (size_t c = 0; c < channels; ++c) {
    middle[c] /= replicas;
    means[c] -= middle[c];
    variances[c] += means[c] * means[c];
  }
  replicas_.sum({means, 2 * channels});
  for (size_t c = 0; c < channels; ++c) {
    const float off = means[c] / replicas;
    means[c] = middle[c] + off;
    variances[c] = std::max(0.0f, variances[c] / replicas - off * off);
  }
  device.CopyToDevice(mean, means, bytes);
  device.CopyToDevice(variance, variances, bytes);
}

void AllReducedMoments::Mean(const Device& device, float* values, int64_t count) {
  const std::span<float> host = std::span(host_).first(static_cast<size_t>(count));
  device.CopyToHost(host.data(), values, host.size_bytes());
  replicas_.sum(host);
  for (float& value : host) value /= static_cast<float>(replicas_.count);
  device.CopyToDevice(values, host.data(), host.size_bytes());
}

}  // namespace trainer
