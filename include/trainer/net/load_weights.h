#pragma once

#include <span>
#include <string>

#include "trainer/net/net.h"

namespace trainer {

// Copies the weights of `model` into each net by layer name and logs, for the first net, the layers
// that stay at their initial values and those of the file that nobody wants. Throws kData when no
// layer of the file is in any net, and as CopyWeights does.
void CopyWeightsLogged(const caffe::NetParameter& model, const std::string& file,
                       std::span<Net* const> nets);

}  // namespace trainer
