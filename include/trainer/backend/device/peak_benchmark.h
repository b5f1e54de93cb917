#pragma once
// What the machine can do, as the yardstick of `trainer time`.

#include "trainer/backend/device/device.h"

namespace trainer {

struct MachinePeak {
  double gflops = 0;  // billions of multiplications and additions per second, f32
  double gbytes = 0;  // billions of bytes per second between memory and all threads
};

// Measures it in less than a second: the best of a few products of square matrices (1024 x 1024 on
// the CPU, as large as it takes on a GPU), and of a few passes of y += a * x over arrays (of 64 MiB
// on the CPU), which move 12 bytes per element (a plain copy reads what it writes as well, without
// that showing in its count).
MachinePeak MeasurePeak(const Device& device);

}  // namespace trainer
