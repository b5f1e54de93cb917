// The OpenMP runtime that oneDNN sees: its regions run on the program's own team of threads.
//
// Why. libgomp's threads spin between regions, also while other programs or our own loops need the
// cores, and how long they do is read from the environment before main() runs. And two teams, ours
// and libgomp's, would take turns on the same cores and wait for each other's time slices.
//
// How. Debian's oneDNN calls libgomp by a handful of functions, and Intel's, which GCC 4.8
// compiled, by some older ones. The functions here have their names. The linker exports them from
// the program, because a shared library on its command line refers to them, and the dynamic linker
// looks into the program before it looks into libgomp; the version that a reference asks for
// (GOMP_4.0) is not compared with a definition that has none. libgomp is loaded all the same, and
// nobody calls it. scripts/cmake/TrainerLibraries.cmake reads which functions the installed oneDNN
// needs and refuses one that needs others: half of it would run on either runtime, and a barrier
// would then wait for threads that the other one has.
//
// What differs. A region has as many threads as it asks for, or the team's size; all of them run at
// the same time, since kernels meet at GOMP_barrier. There are no nested regions: one inside of
// another runs on its own thread.

#include <algorithm>

#include "trainer/base/thread/thread_team.h"

namespace {

// The iterations that the calling thread has left in a loop with schedule(static).
struct StaticLoop {
  long start, step;  // libgomp's type
  long next, last, block, stride;
};
thread_local StaticLoop loop;

}  // namespace

extern "C" {

void GOMP_parallel(void (*call)(void*), void* data, unsigned threads, unsigned /*flags*/) {
  trainer::RunTogether(threads > 0 ? static_cast<int>(threads) : trainer::TeamSize(), call, data);
}
void GOMP_barrier() { trainer::RegionBarrier(); }
int omp_get_thread_num() { return trainer::RegionThread(); }
int omp_get_num_threads() { return trainer::RegionThreads(); }
int omp_get_max_threads() { return trainer::TeamSize(); }
int omp_in_parallel() { return trainer::InParallelRegion() ? 1 : 0; }

// Code of GCC 4.8 calls these. Its caller runs a share of the region between start and end, and
// asks the runtime for its iterations of loops with collapse().
void GOMP_parallel_start(void (*call)(void*), void* data, unsigned threads) {
  trainer::BeginTogether(threads > 0 ? static_cast<int>(threads) : trainer::TeamSize(), call, data);
}
void GOMP_parallel_end() { trainer::EndTogether(); }

bool GOMP_loop_static_next(long* from, long* to) {
  if (loop.next >= loop.last) return false;
  *from = loop.start + loop.next * loop.step;
  *to = loop.start + std::min(loop.next + loop.block, loop.last) * loop.step;
  loop.next += loop.stride;
  return true;
}

// block 0 gives each thread one block; the blocks of the first threads may be one iteration longer.
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
void GOMP_loop_end_nowait() {}

}  // extern "C"
