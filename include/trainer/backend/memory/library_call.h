#pragma once

#include <atomic>

namespace trainer {

// Marks the time that a thread spends inside a compute library. A test that counts heap allocations
// ignores the allocations of the library and of its threads. Calls may be nested.
class InLibraryCall {
 public:
  InLibraryCall() { depth_.fetch_add(1, std::memory_order_relaxed); }
  ~InLibraryCall() { depth_.fetch_sub(1, std::memory_order_relaxed); }
  InLibraryCall(const InLibraryCall&) = delete;
  InLibraryCall& operator=(const InLibraryCall&) = delete;

  // Returns whether any thread is inside a library.
  static bool Active() { return depth_.load(std::memory_order_relaxed) > 0; }

 private:
  static inline std::atomic<int> depth_{0};
};

}  // namespace trainer
