#pragma once

#include "trainer/base/host_device.h"

namespace trainer {

// Updates one average: average = keep * average + (1 - keep) * weight.
struct EmaBlend {
  float keep;
  HD void operator()(float& average, const float& weight) const {
    average = keep * average + (1 - keep) * weight;
  }
};

}  // namespace trainer
