#pragma once

#include <cstddef>
#include <string_view>

namespace trainer {

// Brings a mapped value into memory now, where one thread reads records in the order of the file,
// so that waiting for the disk is reading and not decoding.
inline void TouchPages(std::string_view value) {
  constexpr size_t kPage = 4096;
  for (size_t at = 0; at < value.size(); at += kPage) {
    static_cast<void>(*static_cast<const volatile char*>(value.data() + at));
  }
}

// Begins to bring a small value into the cache, for the thread that decodes it after it has fetched
// some more. Of larger ones the processor itself soon sees that they are read in order.
inline void PrefetchLines(std::string_view value) {
  constexpr size_t kLine = 64, kMost = 4096;
  if (value.size() > kMost) return;
  for (size_t at = 0; at < value.size(); at += kLine) __builtin_prefetch(value.data() + at);
}

}  // namespace trainer
