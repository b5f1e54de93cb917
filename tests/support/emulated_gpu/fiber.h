#pragma once
// Functions with stacks of their own, which can stop and resume.

#include <cstddef>

namespace emulated_gpu {

class Fiber {
 public:
  // body(argument) starts with the first Resume() and must not return.
  Fiber(void (*body)(void*), void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Continues where the body stopped, and returns when it stops again.
  void Resume();
  // Called by the body.
  void Stop();
  // Makes the next Resume() start the body anew. The content of the stack is dropped, not
  // destroyed.
  void Restart();

 private:
  static void Enter(Fiber* fiber);

  void (*body_)(void*);
  void* argument_;
  char* stack_;
  void *own_ = nullptr, *caller_ = nullptr;  // saved stack pointers
  // Needed by AddressSanitizer.
  void *own_fake_ = nullptr, *caller_fake_ = nullptr;
  const void* caller_bottom_ = nullptr;
  size_t caller_size_ = 0;
};

}  // namespace emulated_gpu
