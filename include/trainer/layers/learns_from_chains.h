#pragma once

#include "trainer/layers/chain_options.h"

namespace trainer {

// Interface of layers that learn from samples of their own model.
class LearnsFromChains {
 public:
  virtual ~LearnsFromChains() = default;
  // Called once, after the layer was made and before its first Setup.
  virtual void UseChains(const ChainOptions& options) = 0;
};

}  // namespace trainer
