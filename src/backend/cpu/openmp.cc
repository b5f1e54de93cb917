// The OpenMP runtime that oneDNN sees: its regions run on the program's own team of threads.
//
// Why. libgomp's threads spin between regions, also while other programs or our own loops need the
// cores, and how long they do is read from the environment before main() runs. And two teams, ours
// and libgomp's, would take turns on the same cores and wait for each other's time slices.
//
// How. Debian's oneDNN calls libgomp by a handful of functions. These here have their names. The
// linker exports them from the program, because a shared library on its command line refers to
// them, and the dynamic linker looks into the program before it looks into libgomp; the version
// that a reference asks for (GOMP_4.0) is not compared with a definition that has none. libgomp is
// loaded all the same, and nobody calls it. scripts/cmake/TrainerLibraries.cmake reads which
// functions the installed oneDNN needs and refuses one that needs others: half of it would run on
// either runtime, and a barrier would then wait for threads that the other one has.
//
// What differs. A region has as many threads as it asks for, or the team's size; all of them run at
// the same time, since kernels meet at GOMP_barrier. There are no nested regions: one inside of
// another runs on its own thread.

#include "trainer/base/thread_team.h"

extern "C" {

void GOMP_parallel(void (*call)(void*), void* data, unsigned threads, unsigned /*flags*/) {
  trainer::RunTogether(threads > 0 ? static_cast<int>(threads) : trainer::TeamSize(), call, data);
}
void GOMP_barrier() { trainer::RegionBarrier(); }
int omp_get_thread_num() { return trainer::RegionThread(); }
int omp_get_num_threads() { return trainer::RegionThreads(); }
int omp_get_max_threads() { return trainer::TeamSize(); }
int omp_in_parallel() { return trainer::InParallelRegion() ? 1 : 0; }

}  // extern "C"
