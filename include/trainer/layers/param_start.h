#pragma once

#include <span>

namespace trainer {

// What a layer also is that knows better than a filler what a parameter of its own starts from.
class StartsParams {
 public:
  virtual ~StartsParams() = default;
  // Writes the start of parameter `index`, row-major on the host, unless there is none: false then.
  virtual bool Start(int index, std::span<float> values) const = 0;
};

}  // namespace trainer
