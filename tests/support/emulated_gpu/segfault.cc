#include "support/emulated_gpu/segfault.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "support/emulated_gpu/block.h"
#include "support/emulated_gpu/memory.h"
#include "support/emulated_gpu/touched.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu {
namespace {

using trainer::Join;

struct sigaction previous;

// The bit for writes in the error code of an x86 page fault.
constexpr greg_t kWriteFault = 2;

// Not safe in a signal handler in general, but the process ends here in any case, and it was not in
// the middle of an allocation, since that touches no device memory.
void Explain(int, siginfo_t* info, void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  const bool writes = (registers[REG_ERR] & kWriteFault) != 0;
  if (OpenTouchedPage(info->si_addr, writes)) return;  // the instruction runs again
  if (IsDeviceAddress(info->si_addr)) {
    const std::string who = InKernel() ? Join("device code, ", DescribeThread()) : "host code";
    const std::string line = Join("\nemulated GPU: ", who, " touched device memory at ",
                                  info->si_addr, ": ", DescribeAddress(info->si_addr), "\n");
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
  }
  sigaction(SIGSEGV, &previous, nullptr);  // the instruction runs again
}

}  // namespace

void ExplainSegfaults() {
  struct sigaction action = {};
  action.sa_sigaction = Explain;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &previous);
}

}  // namespace emulated_gpu
