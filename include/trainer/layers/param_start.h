#pragma once

#include <span>

namespace trainer {

// Interface of layers that initialise some of their parameters better than a filler can.
class StartsParams {
 public:
  virtual ~StartsParams() = default;
  // Writes the initial values of parameter `index`, row-major on the host. Returns false if the
  // layer has none.
  virtual bool Start(int index, std::span<float> values) const = 0;
};

}  // namespace trainer
