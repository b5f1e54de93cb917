#pragma once
// Non-temporal stores, which bypass the caches. A plain store first reads the line that it writes,
// which is a third of the traffic of a copy. That read is wasted for data that does not stay in the
// caches anyway.

#include <immintrin.h>

#include <algorithm>
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

// A cache line has 64 bytes, as many as a vector of AVX-512.
inline constexpr size_t kLineBytes = 64;

// Copies cache lines with one store each. Processors write past the caches fastest if a store fills
// a line: batch norm's passes take up to a fifth longer with stores of 16 bytes (Xeon C in
// docs/benchmarks.md).
__attribute__((target("avx512f"))) inline void StreamLinesAvx512(std::byte* to,
                                                                 const std::byte* from,
                                                                 size_t bytes) {
  for (size_t i = 0; i < bytes; i += kLineBytes) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
  }
}

// Copies 16 bytes with one streaming store.
__attribute__((always_inline)) inline void StreamPart(void* to, const void* from) {
  __m128i part;
  std::memcpy(&part, from, sizeof(part));
  _mm_stream_si128(static_cast<__m128i*>(to), part);
}

}  // namespace stream_internal

// Copies a cache line with streaming stores of 16 bytes. `to` must be a multiple of 16.
__attribute__((always_inline)) inline void StreamLine(void* to, const void* from) {
  for (size_t i = 0; i < stream_internal::kLineBytes; i += sizeof(__m128i)) {
    stream_internal::StreamPart(static_cast<std::byte*>(to) + i,
                                static_cast<const std::byte*>(from) + i);
  }
}

// Copies `bytes` bytes with streaming stores. `to` must be a multiple of 16. A call costs a few
// nanoseconds, so callers should pass several cache lines at once, or call StreamLine.
inline void StreamCopy(void* to, const void* from, size_t bytes) {
  constexpr size_t kLine = stream_internal::kLineBytes, kPart = sizeof(__m128i);
  static const bool has_lines = DetectCpuIsa() == CpuIsa::kAvx512;
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  size_t i = 0;
  if (has_lines) {
    const size_t before = -reinterpret_cast<uintptr_t>(to) % kLine;  // the rest of the first line
    for (; i + kPart <= std::min(before, bytes); i += kPart) {
      stream_internal::StreamPart(target + i, source + i);
    }
    const size_t lines = (bytes - i) / kLine * kLine;
    stream_internal::StreamLinesAvx512(target + i, source + i, lines);
    i += lines;
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
