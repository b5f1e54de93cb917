#include "support/emulated_gpu/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef __x86_64__
#error "the switch between stacks is written for x86-64"
#endif

namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr size_t kStack = 512 << 10;
#else
constexpr size_t kStack = 128 << 10;
#endif
constexpr size_t kGuard = 4096;

}  // namespace

// Pushes the callee-saved registers, stores the stack pointer in *from, and continues on the stack
// `to`. swapcontext() does the same with two system calls, 100 times slower.
extern "C" void emulated_gpu_switch(void** from, void* to);
asm(R"(
  .text
  .globl emulated_gpu_switch
  .type emulated_gpu_switch, @function
emulated_gpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size emulated_gpu_switch, .-emulated_gpu_switch
  .globl emulated_gpu_start
  .type emulated_gpu_start, @function
emulated_gpu_start:
  movq %rbx, %rdi
  call *%r12
  ud2
  .size emulated_gpu_start, .-emulated_gpu_start
)");
extern "C" void emulated_gpu_start();

namespace emulated_gpu {

Fiber::Fiber(void (*body)(void*), void* argument) : body_(body), argument_(argument) {
  void* const memory = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, kGuard, PROT_NONE);
  stack_ = static_cast<char*>(memory) + kGuard;
  Restart();
}

Fiber::~Fiber() {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(stack_, kStack);
#endif
  munmap(stack_ - kGuard, kGuard + kStack);
}

void Fiber::Restart() {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(stack_, kStack);
  own_fake_ = nullptr;
#endif
  // emulated_gpu_switch pops r15, r14, r13, r12, rbx, rbp and the return address. The function at
  // that address starts with a stack pointer that is a multiple of 16.
  auto* const top = reinterpret_cast<uint64_t*>(stack_ + kStack - 64);
  auto* const frame = top - 7;
  std::memset(frame, 0, 7 * sizeof(*frame));
  frame[3] = reinterpret_cast<uint64_t>(&Fiber::Enter);
  frame[4] = reinterpret_cast<uint64_t>(this);
  frame[6] = reinterpret_cast<uint64_t>(&emulated_gpu_start);
  own_ = frame;
}

void Fiber::Enter(Fiber* fiber) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &fiber->caller_bottom_, &fiber->caller_size_);
#endif
  fiber->body_(fiber->argument_);
}

void Fiber::Resume() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&caller_fake_, stack_, kStack);
#endif
  emulated_gpu_switch(&caller_, own_);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(caller_fake_, nullptr, nullptr);
#endif
}

void Fiber::Stop() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&own_fake_, caller_bottom_, caller_size_);
#endif
  emulated_gpu_switch(&own_, caller_);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(own_fake_, &caller_bottom_, &caller_size_);
#endif
}

}  // namespace emulated_gpu
