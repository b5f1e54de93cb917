#include "trainer/base/process/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace trainer {

void AdviseHugePages(void* memory, size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  if (bytes < 2 * kHugePage) return;
  // Only whole pages can be advised on; those at the ends may hold something else.
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (address + page - 1) / page * page;
  const uintptr_t end = (address + bytes) / page * page;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace trainer
