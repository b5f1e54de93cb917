#pragma once
// The sizes at which all-reduce changes its algorithm, for the implementation and for the model
// that predicts its time.

#include <cstddef>

namespace trainer {

// Up to so many numbers are reduced through a node's eager buffers, in one step.
inline constexpr size_t kEagerFloats = 1024;
// Between nodes, up to so many numbers are sent complete to every node: one step of latency costs
// less than twice the bytes.
inline constexpr size_t kDirectFloats = 4096;
// Floats of a chunk that is sent at a time, which bounds the memory for received chunks.
inline constexpr size_t kChunkFloats = 1 << 19;

struct AllReduceSpeed {
  double seconds = 0;           // of an all-reduce of one number
  double bytes_per_second = 0;  // of gradients, in an all-reduce of kSpeedBytes
};
inline constexpr size_t kSpeedBytes = 1 << 20;

// The size of a bucket whose latency is an eighth of its time, within 64 KiB and 64 MiB, in
// multiples of 64 KiB.
size_t BucketBytes(const AllReduceSpeed& speed);

}  // namespace trainer
