// Reads a net's prototxt: parsing, upgrades, phase rules, splits.

#include "fuzz/fuzz_target.h"
#include "fuzz/memory_file.h"
#include "trainer/config/net_layers.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return trainer::ExpectRefusalOrSuccess([&] {
    const trainer::MemoryFile file(data, size);
    const trainer::NetSpec net = trainer::LoadNet(file.path());
    for (const caffe::Phase phase : {caffe::TRAIN, caffe::TEST}) {
      caffe::NetState state;
      state.set_phase(phase);
      trainer::ConnectedLayers(net, state);
    }
  });
}
