#pragma once
// How many records a layer brings in a pass, wherever its messages say it.

#include <cstdint>
#include <functional>

#include "trainer/config/layer_spec.h"

namespace trainer {

// Calls change(n) for each batch size n that the layer gives, which becomes what that returns: each
// `batch_size`, and with `shapes` the first axis of what DummyData draws.
void ChangeBatchSizes(caffe::LayerParameter* layer, bool shapes,
                      const std::function<int64_t(int64_t)>& change);

}  // namespace trainer
