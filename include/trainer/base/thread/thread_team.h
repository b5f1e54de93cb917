#pragma once
// The threads of parallel regions: a fork-join team that keeps its speed when other programs take
// some of the cores. Its threads wait by spinning as long as the cores are theirs; when threads of
// the team had to wait for a core lately, they spin for some microseconds and then sleep, so that a
// core is never held by a thread that waits for one that is not running.

#include <cstdint>

namespace trainer {

// How many threads a region gets that names no number, the caller included. 1 until it is set.
int TeamSize();
// At least 1. For the whole process.
void SetTeamSize(int threads);

// Whether the calling thread is inside a region; regions do not nest.
bool InParallelRegion();

namespace thread_team_internal {
using PartCall = void (*)(const void* data, int part);
void RunParts(int parts, PartCall call, const void* data);
}  // namespace thread_team_internal

// Calls part(p) once for each p of [0, parts), on up to `parts` threads, and returns when all are
// done. The calls must not throw, nor wait for each other: the caller also runs the parts of
// threads that did not start in time. Inside a region it is a plain loop.
template <class F>
void RunParts(int parts, const F& part) {
  if (parts == 1) return part(0);
  thread_team_internal::RunParts(
      parts, [](const void* data, int p) { (*static_cast<const F*>(data))(p); }, &part);
}

// Calls call(data) on `threads` threads at the same time, the caller's included, so that they may
// wait for each other: an OpenMP region as libraries write it.
void RunTogether(int threads, void (*call)(void*), void* data);
// Begin or end a region of RunTogether. The caller runs call(data) in between. Regions may nest.
void BeginTogether(int threads, void (*call)(void*), void* data);
void EndTogether();
// In RunTogether: the number of this thread from 0, how many there are, and their barrier.
// Elsewhere 0, 1 and nothing.
int RegionThread();
int RegionThreads();
void RegionBarrier();

// For how many seconds the calling thread was ready to run but had no core, since it began; less
// than 0 where the system does not tell.
double SecondsWithoutCore();
// The same summed over the threads of the caller's team; the team's threads add theirs every few
// milliseconds while they work.
double TeamSecondsWithoutCore();

}  // namespace trainer
