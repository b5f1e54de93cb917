#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "trainer/storage/fault_guard.h"

namespace trainer {

// Reads one byte of each page of a mapped value of the database `path`, so that the thread that
// reads records in the order of the file waits for the disk, and decoding does not. Throws as
// ThrowMapFault does if a page cannot be read. LMDB stores a small value on the page of its key,
// which was already read.
inline void TouchPages(const std::string& path, std::string_view value) {
  constexpr size_t kPage = 4096, kBesideKey = 1024;
  if (value.size() <= kBesideKey) return;
  const MapFault fault = TryMapped([&] {
    for (size_t at = 0; at < value.size(); at += kPage) {
      static_cast<void>(*static_cast<const volatile char*>(value.data() + at));
    }
  });
  if (fault != MapFault::kNone) ThrowMapFault(path, fault);
}

// Prefetches a small value into the cache, for the thread that decodes it after it has fetched a
// few more records. For large values the processor itself detects that they are read in order.
inline void PrefetchLines(std::string_view value) {
  constexpr size_t kLine = 64, kMost = 4096;
  if (value.size() > kMost) return;
  for (size_t at = 0; at < value.size(); at += kLine) __builtin_prefetch(value.data() + at);
}

}  // namespace trainer
