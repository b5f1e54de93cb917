#pragma once
// Functions on stacks of their own, which stop and go on.

#include <cstddef>

namespace emulated_gpu {

class Fiber {
 public:
  // body(argument) starts with the first Resume() and must not return.
  Fiber(void (*body)(void*), void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Goes on where the body stopped, and returns when it stops again.
  void Resume();
  // Called by the body.
  void Stop();
  // The next Resume() starts the body anew. What was on the stack is forgotten, not destroyed.
  void Restart();

 private:
  static void Enter(Fiber* fiber);

  void (*body_)(void*);
  void* argument_;
  char* stack_;
  void *own_ = nullptr, *caller_ = nullptr;  // the stack pointers of those who wait
  // What AddressSanitizer wants to know.
  void *own_fake_ = nullptr, *caller_fake_ = nullptr;
  const void* caller_bottom_ = nullptr;
  size_t caller_size_ = 0;
};

}  // namespace emulated_gpu
