#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/config/net_spec.h"
#include "trainer/net/net.h"

namespace trainer {

// Computes how much each value of a net's input changes one number of its output. Not thread-safe.
class InputGradient {
 public:
  // Compiles the layers of `net` that compute its output `output`, for a backward pass that changes
  // no weights. If a Softmax computes the output, its input is used instead, because a probability
  // near 1 hardly changes. Losses of the net add nothing. `spec` is the net's own spec. It and
  // `net`, which has one Input layer, must outlive this object. Throws as Net does.
  InputGradient(const NetSpec& spec, const Net& net, const std::string& output);

  // Returns the gradient of number `index` of the output with respect to the input, in the shape of
  // `input`, which holds a whole batch. Returns nothing if a layer between them has no gradient.
  std::vector<float> Compute(std::span<const float> input, size_t index);

 private:
  NetSpec spec_;
  std::unique_ptr<Net> net_;
};

}  // namespace trainer
