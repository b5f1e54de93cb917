// Reads a file of weights: parses it, upgrades old formats, and reads every blob.

#include <vector>

#include "fuzz/fuzz_target.h"
#include "fuzz/memory_file.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/config/blob.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (trainer::IsFuzzedHdf5(data, size)) return 0;
  return trainer::ExpectRefusalOrSuccess([&] {
    const trainer::MemoryFile file(data, size);
    caffe::NetParameter net = trainer::ReadModel(file.path());
    for (const caffe::LayerParameter& layer : net.layer()) {
      for (const caffe::BlobProto& blob : layer.blobs()) {
        trainer::ReadBlob(blob, {file.path()}, layer.name());
      }
    }
  });
}
