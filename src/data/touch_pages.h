#pragma once

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

}  // namespace trainer
