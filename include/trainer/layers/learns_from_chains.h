#pragma once

#include "trainer/layers/chain_options.h"

namespace trainer {

// What a layer also is that learns from samples of its own model.
class LearnsFromChains {
 public:
  virtual ~LearnsFromChains() = default;
  // Once, after the layer was made and before its first Setup.
  virtual void UseChains(const ChainOptions& options) = 0;
};

}  // namespace trainer
