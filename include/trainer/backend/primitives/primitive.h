#pragma once

#include <string>
#include <utility>
#include <vector>

namespace trainer {

// Base of all primitives, with the information about the chosen kernel that `trainer time` and
// tests read. For the primitives of a layer it is available after the layer's Prepare.
class Primitive {
 public:
  virtual ~Primitive() = default;

  // The library and kernel that compute the primitive.
  virtual std::string kernel() const = 0;

  // The implementations that were tried before this one and declined, each with its reason: "own
  // Winograd: the stride is 2". Empty if this one was tried first.
  const std::vector<std::string>& skipped_kernels() const { return declined_; }
  void set_skipped_kernels(std::vector<std::string> lines) { declined_ = std::move(lines); }

 private:
  std::vector<std::string> declined_;
};

}  // namespace trainer
