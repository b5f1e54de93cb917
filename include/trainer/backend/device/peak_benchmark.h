#pragma once
// Measures the peak speed of the machine, to which `trainer time` compares each layer.

#include "trainer/backend/device/device.h"

namespace trainer {

struct MachinePeak {
  double gflops = 0;  // billions of multiplications and additions per second, f32
  double gbytes = 0;  // billions of bytes per second between memory and all threads
};

// Takes about a second. The first figure is the best of a few products of square matrices (1024 x
// 1024 on the CPU, as large as fits on a GPU). The second is the best of a few passes of y += a *
// x, which move 12 bytes per element, over arrays that do not fit the caches (on a CPU: if they are
// at most 1 GiB and an eighth of the memory). A plain copy would not do: its stores also read the
// lines they write, and its count would omit these reads.
MachinePeak MeasurePeak(const Device& device);

}  // namespace trainer
