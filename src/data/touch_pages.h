#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "trainer/data/map_faults.h"

namespace trainer {

// Brings a mapped value of the database `path` into memory now, where one thread reads records in
// the order of the file, so that waiting for the disk is reading and not decoding. Throws as
// ThrowMapFault does where a page cannot be read. LMDB has a small value on the page of its key,
// which was read before.
inline void TouchPages(const std::string& path, std::string_view value) {
  constexpr size_t kPage = 4096, kBesideKey = 1024;
  if (value.size() <= kBesideKey) return;
  const MapFault fault = TryCall([&] {
    for (size_t at = 0; at < value.size(); at += kPage) {
      static_cast<void>(*static_cast<const volatile char*>(value.data() + at));
    }
  });
  if (fault != MapFault::kNone) ThrowMapFault(path, fault);
}

// Begins to bring a small value into the cache, for the thread that decodes it after it has fetched
// some more. Of larger ones the processor itself soon sees that they are read in order.
inline void PrefetchLines(std::string_view value) {
  constexpr size_t kLine = 64, kMost = 4096;
  if (value.size() > kMost) return;
  for (size_t at = 0; at < value.size(); at += kLine) __builtin_prefetch(value.data() + at);
}

}  // namespace trainer
