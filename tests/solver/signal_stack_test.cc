#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>

#include "trainer/solver/signals.h"

namespace trainer {
namespace {

// Library kernels may use the stack pointer and the memory below it for other purposes: handlers
// that ran on that stack corrupted the heap in oneDNN's sgemm. Here a handler that uses the memory
// below the stack pointer fails.
TEST(SignalStackTest, AHandlerNeedsNothingOfTheStackThatItInterrupts) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const pages =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(pages, page, PROT_NONE), 0);
  char* const top = static_cast<char*>(pages) + page + 64;

  SignalWatch watch({});
  watch.BeginRun();
  long result = SYS_tgkill;
  asm volatile(
      "mov %%rsp, %%rbx\n\t"
      "mov %[top], %%rsp\n\t"
      "syscall\n\t"
      "mov %%rbx, %%rsp\n\t"
      : "+a"(result)
      : [top] "r"(top), "D"(static_cast<long>(getpid())), "S"(static_cast<long>(gettid())),
        "d"(static_cast<long>(SIGTERM))
      : "rbx", "rcx", "r11", "memory", "cc");
  EXPECT_EQ(result, 0);
  EXPECT_EQ(watch.Poll(), Request::kStop);
  munmap(pages, 2 * page);
}

}  // namespace
}  // namespace trainer
