#pragma once

#include <string>

#include "trainer/backend/device/device.h"
#include "trainer/net/net.h"

namespace trainer {

// Returns a warning that names the layers of `net` for which no library of a GPU computes some
// convolution or matrix product, and the reason of the first one. The program's own kernels compute
// these, many times slower. Returns "" if there are none, or if `device` is not a GPU.
std::string DescribeOwnKernels(const Net& net, const Device& device);

}  // namespace trainer
