#pragma once
// Stores past the caches. A plain store reads the line that it is going to write, which is a third
// of the traffic of a copy; for numbers that do not stay in the caches anyhow that is wasted.

#include <emmintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trainer/backend/loops/parallel_for.h"

namespace trainer {

// From this size on, streaming is the faster: of 8 MiB a reader still finds most in the last cache,
// of 16 MiB little.
inline constexpr int64_t kStreamBytes = int64_t{12} << 20;

// Whether to stream an output of `bytes` at `to`, in pieces of `piece` bytes.
inline bool Streams(const void* to, int64_t bytes, int64_t piece) {
  return bytes >= kStreamBytes && piece % 16 == 0 && reinterpret_cast<uintptr_t>(to) % 16 == 0;
}

// What was streamed before is seen by whoever sees a store after it.
inline void StreamFence() { _mm_sfence(); }

namespace stream_internal {

__attribute__((always_inline)) inline void StreamPart(void* to, const void* from) {
  __m128i part;
  std::memcpy(&part, from, sizeof(part));
  _mm_stream_si128(static_cast<__m128i*>(to), part);
}

}  // namespace stream_internal

// Copies to an address that is a multiple of 16.
inline void StreamCopy(void* to, const void* from, size_t bytes) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  constexpr size_t kPart = sizeof(__m128i);
  size_t i = 0;
  for (; i + 4 * kPart <= bytes; i += 4 * kPart) {  // a line
    for (size_t k = 0; k < 4; ++k)
      stream_internal::StreamPart(target + i + k * kPart, source + i + k * kPart);
  }
  for (; i + kPart <= bytes; i += kPart) stream_internal::StreamPart(target + i, source + i);
  std::memcpy(target + i, source + i, bytes - i);
}

// ParallelRanges where each thread fences what it streamed.
template <class Range>
void StreamedRanges(int64_t n, int64_t grain, bool stream, const Range& range) {
  ParallelRanges(n, grain, [&](int64_t begin, int64_t end) {
    range(begin, end);
    if (stream) StreamFence();
  });
}

// ParallelFor, likewise.
template <class Body>
void StreamedFor(int64_t n, int64_t grain, bool stream, Body body) {
  StreamedRanges(n, grain, stream, [&](int64_t begin, int64_t end) {
    parallel_for_internal::Loop(begin, end, body);
  });
}

}  // namespace trainer
