#pragma once
// The two forms of a BatchNorm and their stored blobs: sums with the sum of their weights, or
// averages with the number 1.

#include <cstdint>
#include <string>

#include "trainer/base/host_device.h"
#include "trainer/config/layer_spec.h"

namespace trainer {

// Whether a BatchNorm learns scale and bias, the form of NVIDIA Caffe with 5 blobs: because of
// scale_bias, or because one of the two has a filler.
inline bool LearnsScaleAndBias(const caffe::BatchNormParameter& param) {
  return param.scale_bias() || param.has_scale_filler() || param.has_bias_filler();
}

// See Layer::AdaptBlobs.
bool AdaptBatchNormBlobs(const LayerSpec& spec, const caffe::LayerParameter& stored,
                         const std::string& file, caffe::LayerParameter* adapted);

// The stored sums, and that of their weights, forget the past by `keep` per batch; the variance is
// made unbiased.
struct UpdateSums {
  float *mean_sum, *variance_sum, *factor;
  const float *mean, *variance;
  float keep, unbias;
  HD void operator()(int64_t c) const {
    mean_sum[c] = mean_sum[c] * keep + mean[c];
    variance_sum[c] = variance_sum[c] * keep + variance[c] * unbias;
    if (c == 0) *factor = *factor * keep + 1;
  }
};

// Divides the stored sums by the sum of their weights; gives 0 if nothing was summed yet.
struct StoredMoments {
  const float *mean_sum, *variance_sum, *factor;
  float *mean, *variance;
  HD void operator()(int64_t c) const {
    const float scale = *factor == 0 ? 0.0f : 1 / *factor;
    mean[c] = mean_sum[c] * scale;
    variance[c] = variance_sum[c] * scale;
  }
};

// Moves the stored averages towards the batch's; the first batch replaces them.
struct UpdateAverages {
  float *mean_stored, *variance_stored;
  const float *factor, *mean, *variance;
  float keep, unbias;
  HD void operator()(int64_t c) const {
    const float past = *factor == 0 ? 0.0f : keep;
    mean_stored[c] = mean_stored[c] * past + mean[c] * (1 - past);
    variance_stored[c] = variance_stored[c] * past + variance[c] * unbias * (1 - past);
  }
};
struct SetToOne {
  float* factor;
  HD void operator()(int64_t) const { *factor = 1; }
};

}  // namespace trainer
