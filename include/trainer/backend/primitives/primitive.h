#pragma once

#include <string>
#include <utility>
#include <vector>

namespace trainer {

// What the plans of all families tell about themselves, for `trainer time` and tests: of a layer's
// plans, from its Prepare on.
class Primitive {
 public:
  virtual ~Primitive() = default;

  // Which library and kernel computes it.
  virtual std::string kernel() const = 0;

  // The implementations that were asked before this one and declined, each with its reason: "own
  // Winograd: the stride is 2". Empty where only one was there to ask.
  const std::vector<std::string>& skipped_kernels() const { return declined_; }
  void set_skipped_kernels(std::vector<std::string> lines) { declined_ = std::move(lines); }

 private:
  std::vector<std::string> declined_;
};

}  // namespace trainer
