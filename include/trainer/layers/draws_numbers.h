#pragma once

namespace trainer {

// Interface of layers whose training pass may draw random numbers, so that another pass with the
// same inputs and weights gives other outputs.
class DrawsNumbers {
 public:
  virtual ~DrawsNumbers() = default;
  virtual bool Draws() const { return true; }
};

}  // namespace trainer
