#pragma once
// What a kernel reads and writes of its device's memory, by pages: all are closed before it, and
// its first access to each is a SIGSEGV that opens the page for reading, or for writing.

#include <cstdint>

namespace emulated_gpu {

// Of kernels that run while it lives. One at a time, within a DeviceAccess.
class TouchedPages {
 public:
  explicit TouchedPages(unsigned devices);
  ~TouchedPages();
  TouchedPages(const TouchedPages&) = delete;
  TouchedPages& operator=(const TouchedPages&) = delete;

  // A page that is written first and read later counts as written alone.
  int64_t ReadBytes() const;
  int64_t WrittenBytes() const;
};

// Called where an access failed: whether it was to a page that is closed to be counted, and is open
// now. Safe in a signal's handler.
bool OpenTouchedPage(const void* address, bool write);

}  // namespace emulated_gpu
