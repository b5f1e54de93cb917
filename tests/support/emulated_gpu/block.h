#pragma once
// Runs a kernel: blocks one after the other, the threads of a block as fibres, both in a random
// order.

#include <string>

#include "emulated_device_code.h"

namespace emulated_gpu {

struct Kernel {
  dim3 blocks, threads;
  std::function<void()> run;
};

// What is wrong is a problem, as is a block whose threads wait for each other for ever: the kernel
// then ends with false, in the middle.
bool RunKernel(const Kernel& kernel);

// The hooks of the threads that run.
void Sync(Site site);
void Warp(const WarpCall& call);

// Whether device code is running now.
bool InKernel();
// "block (0, 1, 0), thread (3, 0, 0)", of the one that runs.
std::string DescribeThread();

}  // namespace emulated_gpu
