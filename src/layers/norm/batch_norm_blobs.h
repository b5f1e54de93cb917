#pragma once
// The two forms of a BatchNorm and their stored blobs: sums with the sum of their weights, or
// averages with the number 1.

#include <cstdint>
#include <string>

#include "trainer/base/host_device.h"
#include "trainer/config/layer_spec.h"

namespace trainer {

// Returns true if a BatchNorm learns scale and bias, the form of NVIDIA Caffe with 5 blobs: because
// of scale_bias, or because one of the two has a filler.
inline bool LearnsScaleAndBias(const caffe::BatchNormParameter& param) {
  return param.scale_bias() || param.has_scale_filler() || param.has_bias_filler();
}

// Implements Layer::AdaptBlobs. For a BatchNorm that learns scale and bias, brings 3 or 5 stored
// blobs into the order (mean, variance, 1, scale, bias) with averages instead of sums. Throws kData
// if the file has 5 blobs and the layer learns no scale and bias.
bool AdaptBatchNormBlobs(const LayerSpec& spec, const caffe::LayerParameter& stored,
                         const std::string& file, caffe::LayerParameter* adapted);

// Adds the batch's moments of channel c to the stored sums: the sums, and the sum of their weights
// (`factor`), are first multiplied by `keep`; `unbias` makes the variance unbiased. Caffe's form.
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

// Moves the stored averages of channel c towards the batch's, past * keep + new * (1 - keep); the
// first batch (`factor` is 0) replaces them. The form with scale and bias.
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
// Marks the averages as set; UpdateAverages of all channels must be enqueued before.
struct SetToOne {
  float* factor;
  HD void operator()(int64_t) const { *factor = 1; }
};

}  // namespace trainer
