#pragma once
// How sums over ranks are cut, for who makes them and who predicts how long they take.

#include <cstddef>

namespace trainer {

// Sums of at most so many numbers go through the mailboxes of a machine, in one stage.
inline constexpr size_t kMailedFloats = 1024;
// Between machines: below, one step of latency beats half the bytes, and every machine sends all.
inline constexpr size_t kWholeFloats = 4096;
// Floats that are sent at a time, which bounds the memory for pieces.
inline constexpr size_t kPartFloats = 1 << 19;

struct ExchangeSpeed {
  double seconds = 0;           // of a sum of one number
  double bytes_per_second = 0;  // of gradients, in a sum of kSpeedBytes
};
inline constexpr size_t kSpeedBytes = 1 << 20;

// How large a sum should be for its latency to matter little: an eighth of its time, within 64 KiB
// and 64 MiB. Multiples of 64 KiB.
size_t BucketBytes(const ExchangeSpeed& speed);

}  // namespace trainer
