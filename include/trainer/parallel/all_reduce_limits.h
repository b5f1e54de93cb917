#pragma once
// The sizes at which all-reduce changes its algorithm, for the implementation and for the model
// that predicts its time.

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace trainer {

// Up to this many numbers are reduced through a node's eager buffers, in one phase.
inline constexpr size_t kEagerFloats = 1024;
// Between nodes, up to this many numbers are sent complete to every node, because one more message
// delay would cost more than the additional bytes.
inline constexpr size_t kDirectFloats = 4096;
// The floats of a chunk that is sent at a time. It bounds the memory for received chunks.
inline constexpr size_t kChunkFloats = 1 << 19;

// The bytes of the all-reduce by which the speed of all-reduces is measured or predicted.
inline constexpr size_t kSpeedBytes = 1 << 20;

// Returns the size of a bucket for which latency is an eighth of its all-reduce, rounded up to a
// multiple of 64 KiB, from 64 KiB to 64 MiB. `latency` is the time of an all-reduce of one number
// in seconds, `bytes_per_second` the speed of one of kSpeedBytes.
inline size_t BucketBytes(double latency, double bytes_per_second) {
  constexpr double kUnit = 65536, kMost = 64.0 * 1024 * 1024;
  const double bytes = 8 * latency * bytes_per_second;
  return static_cast<size_t>(std::clamp(std::ceil(bytes / kUnit) * kUnit, kUnit, kMost));
}

}  // namespace trainer
