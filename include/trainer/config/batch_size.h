#pragma once
// Finds how many records a layer reads in a pass, wherever its messages give that number.

#include <cstdint>
#include <functional>

#include "trainer/config/layer_spec.h"

namespace trainer {

// Replaces each batch size n of the layer by change(n): each `batch_size`, and with `shapes` also
// the first axis of the blobs that DummyData fills.
void ChangeBatchSizes(caffe::LayerParameter* layer, bool shapes,
                      const std::function<int64_t(int64_t)>& change);

}  // namespace trainer
