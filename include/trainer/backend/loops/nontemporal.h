#pragma once
// Non-temporal stores, which bypass the caches. A plain store first reads the line that it writes,
// which is a third of the traffic of a copy. That read is wasted for data that does not stay in the
// caches anyway.

#include <emmintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trainer/backend/loops/parallel_for.h"

namespace trainer {

// From this size on, streaming is faster: a reader still finds most of an 8 MiB array in the
// last-level cache, but little of a 16 MiB array.
inline constexpr int64_t kStreamBytes = int64_t{12} << 20;

// Returns whether to stream an output of `bytes` bytes at `to`, written in pieces of `piece` bytes:
// it is large, and `to` and all pieces are aligned to 16 bytes.
inline bool Streams(const void* to, int64_t bytes, int64_t piece) {
  return bytes >= kStreamBytes && piece % 16 == 0 && reinterpret_cast<uintptr_t>(to) % 16 == 0;
}

// Orders streamed stores before all later stores: a thread that sees a later store sees the
// streamed data too.
inline void StreamFence() { _mm_sfence(); }

namespace stream_internal {

// Copies 16 bytes with one streaming store.
__attribute__((always_inline)) inline void StreamPart(void* to, const void* from) {
  __m128i part;
  std::memcpy(&part, from, sizeof(part));
  _mm_stream_si128(static_cast<__m128i*>(to), part);
}

}  // namespace stream_internal

// Copies `bytes` bytes with streaming stores. `to` must be a multiple of 16.
inline void StreamCopy(void* to, const void* from, size_t bytes) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  constexpr size_t kPart = sizeof(__m128i);
  size_t i = 0;
  for (; i + 4 * kPart <= bytes; i += 4 * kPart) {  // one cache line
    for (size_t k = 0; k < 4; ++k)
      stream_internal::StreamPart(target + i + k * kPart, source + i + k * kPart);
  }
  for (; i + kPart <= bytes; i += kPart) stream_internal::StreamPart(target + i, source + i);
  std::memcpy(target + i, source + i, bytes - i);
}

// Runs ParallelRanges, and fences each thread's stores if `stream` is set.
template <class Range>
void StreamedRanges(int64_t n, int64_t grain, bool stream, const Range& range) {
  ParallelRanges(n, grain, [&](int64_t begin, int64_t end) {
    range(begin, end);
    if (stream) StreamFence();
  });
}

// Runs ParallelFor, and fences each thread's stores if `stream` is set.
template <class Body>
void StreamedFor(int64_t n, int64_t grain, bool stream, Body body) {
  StreamedRanges(n, grain, stream, [&](int64_t begin, int64_t end) {
    parallel_for_internal::Loop(begin, end, body);
  });
}

}  // namespace trainer
