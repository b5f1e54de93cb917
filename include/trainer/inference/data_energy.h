#pragma once

#include <vector>

#include "trainer/inference/boltzmann_machine.h"

namespace trainer {

// What a machine makes of its inputs in test batches.
struct DataEnergy {
  int64_t records = 0;
  double free_energy = 0;    // the mean
  std::vector<float> means;  // of each visible unit
};

// Runs `batches` passes of the machine's net, in which layers' inputs keep their numbers after a
// pass (MemoryMode::kSeparate). Throws as the passes do.
DataEnergy MeasureData(Net& net, const BoltzmannMachine& machine, int batches);

}  // namespace trainer
