#pragma once

#include <cstdint>
#include <vector>

#include "trainer/inference/generative/rbm.h"

namespace trainer {

// The free energy of test records under an RBM: -log of the unnormalized probability, with the sum
// over the hidden units.
struct FreeEnergy {
  int64_t records = 0;
  double free_energy = 0;    // mean over the records
  std::vector<float> means;  // mean of each visible unit over the records
};

// Runs `batches` passes of `net`, which contains `rbm` and must have been built with
// BufferReuse::kSeparate, because the layer's input is read after each pass. Throws as
// Net::Forward.
FreeEnergy MeasureFreeEnergy(Net& net, const RbmModel& rbm, int batches);

}  // namespace trainer
