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

struct AllReduceSpeed {
  double seconds = 0;           // for an all-reduce of one number
  double bytes_per_second = 0;  // for gradients, in an all-reduce of kSpeedBytes
};
inline constexpr size_t kSpeedBytes = 1 << 20;

// Returns the size of a bucket for which latency is an eighth of its all-reduce, rounded up to a
// multiple of 64 KiB, from 64 KiB to 64 MiB.
inline size_t BucketBytes(const AllReduceSpeed& speed) {
  constexpr double kUnit = 65536, kMost = 64.0 * 1024 * 1024;
  const double bytes = 8 * speed.seconds * speed.bytes_per_second;
  return static_cast<size_t>(std::clamp(std::ceil(bytes / kUnit) * kUnit, kUnit, kMost));
}

}  // namespace trainer
