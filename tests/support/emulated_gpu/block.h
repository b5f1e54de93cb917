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

// Runs the kernel and adds a problem for each error. If the threads of a block wait for each other
// forever, that is a problem, too, and the function returns false without running the rest.
bool RunKernel(const Kernel& kernel);

// Called by running threads, through `hooks`.
void Sync(Site site);
void Warp(const WarpCall& call);

// Returns whether this thread is running device code.
bool InKernel();
// Returns the position of the running thread: "block (0, 1, 0), thread (3, 0, 0)".
std::string DescribeThread();

}  // namespace emulated_gpu
