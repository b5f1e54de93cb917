// The OpenMP runtime that oneDNN sees: its regions run on the program's own team, which does not
// spin for threads that have no core. libgomp's spinning can only be set before a process starts.
// These are the functions of libgomp that Debian's oneDNN calls, under their names, so that the
// dynamic linker takes these; scripts/cmake/TrainerLibraries.cmake checks that it needs no others.

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
