#include "record_count.h"

#include "batch_size.h"
#include "trainer/config/batch_size.h"
#include "trainer/net/data_layers.h"

namespace trainer {
int64_t BatchSizeOfLayer(const LayerSpec& layer) {
  caffe::LayerParameter proto = layer.proto();
  int64_t batch = 0;
  ChangeBatchSizes(&proto, false, [&](int64_t size) { return batch = size; });
  return batch;
}

EpochLayer FindEpochLayer(SolverSpec* spec) {
  for (LayerSpec* const layer : TrainingLayers(spec)) {
    const int64_t batch = BatchSizeOfLayer(*layer);
    if (batch == 0) continue;
    const int64_t records = CountLayerRecords(*layer);
    if (records > 0) return {layer, records, batch};
  }
  return {};
}

}  // namespace trainer
