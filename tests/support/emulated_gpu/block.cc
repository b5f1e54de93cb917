#include "support/emulated_gpu/block.h"

#include <numeric>

#include "support/emulated_gpu/block_run.h"
#include "support/emulated_gpu/state.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu {
namespace {

using trainer::Join;

BlockRun* running = nullptr;  // guarded by the mutex

BlockRun& TheRun() {
  static BlockRun* const run = new BlockRun;
  return *run;
}

}  // namespace

bool RunKernel(const Kernel& kernel) {
  BlockRun& run = TheRun();
  run.Start(kernel);
  running = &run;
  in_kernel = true;
  const uint64_t blocks = uint64_t{kernel.blocks.x} * kernel.blocks.y * kernel.blocks.z;
  // This step visits every block once, because it has no common factor with the number of blocks.
  uint64_t step = 1, b = 0;
  if (!CountsBytes()) {
    step += TheRandom().Below(blocks);
    while (std::gcd(step, blocks) != 1) ++step;
    b = TheRandom().Below(blocks);
  }
  bool good = true;
  for (uint64_t i = 0; i < blocks && good; ++i, b = (b + step) % blocks) {
    good = run.Run(dim3(static_cast<unsigned>(b % kernel.blocks.x),
                        static_cast<unsigned>(b / kernel.blocks.x % kernel.blocks.y),
                        static_cast<unsigned>(b / kernel.blocks.x / kernel.blocks.y)));
  }
  in_kernel = false;
  running = nullptr;
  return good;
}

bool InKernel() { return in_kernel; }

std::string DescribeThread() {
  return Join("block (", at.block.x, ", ", at.block.y, ", ", at.block.z, "), thread (", at.thread.x,
              ", ", at.thread.y, ", ", at.thread.z, ")");
}

void Sync(Site site) { running->Sync(site); }
void Warp(const WarpCall& call) { running->Warp(call); }

}  // namespace emulated_gpu
