#pragma once
// The threads of parallel regions: a fork-join team that keeps its speed when other programs take
// some of the cores. Its threads wait by spinning as long as the cores are theirs; when threads of
// the team had to wait for a core lately, they spin for some microseconds and then sleep, so that a
// core is never held by a thread that waits for one that is not running.

#include <cstdint>

namespace trainer {

// Returns how many threads, including the caller, run a region that does not specify a number. It
// is 1 until it is set.
int TeamSize();
// Sets the number, at least 1, for the whole process.
void SetTeamSize(int threads);

// Returns whether the calling thread is inside a region, where RunParts is a plain loop.
bool InParallelRegion();

namespace thread_team_internal {
using PartCall = void (*)(const void* data, int part, int thread);
// Does what the templates below describe, with the functor as a pointer.
void RunParts(int parts, int max_threads, PartCall call, const void* data);
}  // namespace thread_team_internal

// Calls run(part, thread) once for each part of [0, parts), on min(parts, max_threads, TeamSize())
// threads, and returns when all are done. Each thread runs neighbouring parts, then parts that
// other threads have not begun: with several parts per thread, a thread that loses its core for a
// while does not hold up the others. `thread`, below max_threads, numbers the thread that runs the
// part: callers that have scratch memory for max_threads threads find it by this number. The calls
// must not throw, nor wait for each other. Inside a region it is a plain loop.
template <class F>
void RunParts(int parts, int max_threads, const F& run) {
  const auto call = [](const void* data, int part, int thread) {
    (*static_cast<const F*>(data))(part, thread);
  };
  if (parts == 1) return call(&run, 0, 0);
  thread_team_internal::RunParts(parts, max_threads, call, &run);
}
// Calls run(part) in the same way, on min(parts, TeamSize()) threads.
template <class F>
void RunParts(int parts, const F& run) {
  RunParts(parts, parts, [&run](int part, int) { run(part); });
}

// Calls call(data) on `threads` threads at the same time, the caller's included, so that they may
// wait for each other: an OpenMP region as libraries write it.
void RunTogether(int threads, void (*call)(void*), void* data);
// Begins a region of RunTogether, in which the caller itself runs call(data) until EndTogether.
// Regions may nest; an inner one has one thread.
void BeginTogether(int threads, void (*call)(void*), void* data);
// Ends the last region that BeginTogether began: waits for its other threads.
void EndTogether();
// Returns the number of this thread, from 0, in a region of RunTogether; elsewhere 0.
int RegionThread();
// Returns the number of threads of that region; elsewhere 1.
int RegionThreads();
// Waits until all threads of the region have called it; elsewhere does nothing.
void RegionBarrier();

// Returns SecondsWithoutCore() (base/thread/spin.h) summed over the threads of the caller's team.
// The team's threads update their part every few milliseconds while they work.
double TeamSecondsWithoutCore();

}  // namespace trainer
