// The OpenMP runtime for oneDNN: its parallel regions run on the program's own team of threads.
//
// Why: libgomp's threads spin between regions, even while other programs or our own loops need the
// cores, and libgomp reads from the environment before main() runs how long they spin. Two teams,
// ours and libgomp's, would take turns on the same cores and wait for each other's time slices.
//
// How: Debian's oneDNN calls a handful of functions of libgomp, and Intel's, which was compiled
// with GCC 4.8, calls some older ones. This file defines functions with these names. The linker
// exports them from the program, because a shared library on its command line refers to them, and
// the dynamic linker searches the program before libgomp. A versioned reference (GOMP_4.0) also
// binds to a definition without a version. libgomp is still loaded, but never called.
// scripts/cmake/TrainerLibraries.cmake checks which functions the installed oneDNN needs and
// refuses one that needs others: it would run on both runtimes, and a barrier would wait for
// threads of the other runtime.
//
// Differences: a region has as many threads as it requests, or the team's size. All of them run at
// the same time, since kernels meet at GOMP_barrier. Regions are not nested: a region inside
// another one runs on its own thread only.

#include <algorithm>

#include "trainer/base/thread/thread_team.h"

namespace {

// The remaining iterations of the calling thread in a loop with schedule(static).
struct StaticLoop {
  long start, step;  // libgomp's type
  long next, last, block, stride;
};
thread_local StaticLoop loop;

}  // namespace

extern "C" {

// Runs call(data) on `threads` threads at the same time; 0: the size of the team.
void GOMP_parallel(void (*call)(void*), void* data, unsigned threads, unsigned /*flags*/) {
  trainer::RunTogether(threads > 0 ? static_cast<int>(threads) : trainer::TeamSize(), call, data);
}
void GOMP_barrier() { trainer::RegionBarrier(); }
int omp_get_thread_num() { return trainer::RegionThread(); }
int omp_get_num_threads() { return trainer::RegionThreads(); }
int omp_get_max_threads() { return trainer::TeamSize(); }
int omp_in_parallel() { return trainer::InParallelRegion() ? 1 : 0; }

// Code compiled by GCC 4.8 calls these functions. The caller runs its share of the region between
// start and end, and the code asks the runtime for the iterations of loops with collapse().
void GOMP_parallel_start(void (*call)(void*), void* data, unsigned threads) {
  trainer::BeginTogether(threads > 0 ? static_cast<int>(threads) : trainer::TeamSize(), call, data);
}
void GOMP_parallel_end() { trainer::EndTogether(); }

// Sets [from, to) to the thread's next block of iterations. Returns false after the last one.
bool GOMP_loop_static_next(long* from, long* to) {
  if (loop.next >= loop.last) return false;
  *from = loop.start + loop.next * loop.step;
  *to = loop.start + std::min(loop.next + loop.block, loop.last) * loop.step;
  loop.next += loop.stride;
  return true;
}

// Begins a loop with schedule(static, block) and returns as GOMP_loop_static_next does. If `block`
// is 0, each thread gets one block; the blocks of the first threads may be one iteration longer.
bool GOMP_loop_static_start(long start, long end, long step, long block, long* from, long* to) {
  const long count = std::max(0L, (end - start + step - (step > 0 ? 1 : -1)) / step);
  const long thread = trainer::RegionThread();
  const long threads = trainer::RegionThreads();
  if (block > 0) {
    loop = {start, step, thread * block, count, block, threads * block};
  } else {
    const long share = count / threads;
    const long longer = count % threads;
    const long first = thread * share + std::min(thread, longer);
    const long mine = share + (thread < longer ? 1 : 0);
    loop = {start, step, first, first + mine, mine, mine};
  }
  return GOMP_loop_static_next(from, to);
}
// Does nothing: a static loop has no state that others need.
void GOMP_loop_end_nowait() {}

}  // extern "C"
