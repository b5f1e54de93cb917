#pragma once
// Counts the pages that a kernel reads and writes in its device's memory: all pages are closed
// before it runs, and its first access to each is a SIGSEGV that opens the page for reading or for
// writing.

#include <cstdint>

namespace emulated_gpu {

// Counts for the kernels that run during its lifetime. Only one may exist, within a DeviceAccess.
class TouchedPages {
 public:
  explicit TouchedPages(unsigned devices);
  ~TouchedPages();
  TouchedPages(const TouchedPages&) = delete;
  TouchedPages& operator=(const TouchedPages&) = delete;

  // A page that is written first and read later counts only as written.
  int64_t ReadBytes() const;
  int64_t WrittenBytes() const;
};

// Called after a failed access: returns whether the page was closed for counting and is open now.
// Safe in a signal handler.
bool OpenTouchedPage(const void* address, bool write);

}  // namespace emulated_gpu
