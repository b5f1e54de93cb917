#pragma once

#include <memory>

#include "trainer/input/decoder.h"
#include "trainer/input/record_sampler.h"

namespace trainer {

// The input of a BatchQueue. Decoders may use data that the sampler owns, so they are destroyed
// first.
struct RecordSource {
  std::unique_ptr<RecordSampler> sampler;
  std::unique_ptr<DecoderFactory> decoders;
};

}  // namespace trainer
