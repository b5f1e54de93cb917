#pragma once
// An error that names the layer that caused it, and its line.

#include "trainer/base/error/error.h"

namespace trainer {

// LayerSpec::Fail and the functions like it throw this error: "place: layer 'conv2' (Convolution):
// message".
class LayerError final : public Error {
 public:
  using Error::Error;
};

}  // namespace trainer
