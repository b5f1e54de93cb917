#pragma once

namespace trainer {

// Marks the time that this thread spends inside a compute library, so that a test which counts
// heap allocations can tell the library's from ours. Nests.
class InLibraryCall {
 public:
  InLibraryCall() { ++depth_; }
  ~InLibraryCall() { --depth_; }
  InLibraryCall(const InLibraryCall&) = delete;
  InLibraryCall& operator=(const InLibraryCall&) = delete;

  static bool Active() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace trainer
