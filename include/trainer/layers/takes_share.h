#pragma once

#include "trainer/data/batch_share.h"

namespace trainer {

// What a layer also is when it can bring every count-th batch of those that it would bring alone.
class TakesShare {
 public:
  virtual ~TakesShare() = default;
  // Before the first Forward. From then on the state that it saves is that after the whole round.
  virtual void TakeShare(const BatchShare& share) = 0;
};

}  // namespace trainer
