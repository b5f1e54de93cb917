#pragma once
// An error that names the layer it is about, and its line.

#include "trainer/base/error/error.h"

namespace trainer {

// What LayerSpec::Fail and its like throw: "place: layer 'conv2' (Convolution): message".
class LayerError final : public Error {
 public:
  using Error::Error;
};

}  // namespace trainer
