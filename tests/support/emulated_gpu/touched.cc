#include "support/emulated_gpu/touched.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "support/emulated_gpu/memory.h"

namespace emulated_gpu {
namespace {

constexpr size_t kPage = 4096;

enum Access : unsigned char { kClosed, kReadable, kWritable };

struct Mapping {
  char* begin;
  std::vector<Access> pages;
};

struct Counting {
  std::vector<Mapping> mappings;  // by address
  int64_t read = 0, written = 0;  // pages
};
Counting counting;  // guarded by the mutex

}  // namespace

TouchedPages::TouchedPages(unsigned devices) {
  counting = {};
  ForDeviceAllocations([&](const Allocation& a) {
    if ((devices >> a.device & 1) == 0) return;
    counting.mappings.push_back({a.mapping, std::vector<Access>(a.mapped / kPage, kClosed)});
    mprotect(a.mapping, a.mapped, PROT_NONE);
  });
}

TouchedPages::~TouchedPages() {
  for (const Mapping& it : counting.mappings) {
    mprotect(it.begin, it.pages.size() * kPage, PROT_READ | PROT_WRITE);
  }
  counting.mappings.clear();
}

int64_t TouchedPages::ReadBytes() const { return counting.read * int64_t{kPage}; }
int64_t TouchedPages::WrittenBytes() const { return counting.written * int64_t{kPage}; }

bool OpenTouchedPage(const void* address, bool write) {
  const auto* const at = static_cast<const char*>(address);
  auto it = std::upper_bound(counting.mappings.begin(), counting.mappings.end(), at,
                             [](const char* a, const Mapping& m) { return a < m.begin; });
  if (it == counting.mappings.begin()) return false;
  --it;
  const size_t page = static_cast<size_t>(at - it->begin) / kPage;
  if (page >= it->pages.size()) return false;
  Access& access = it->pages[page];
  if (access == kWritable || (access == kReadable && !write)) return false;
  access = write ? kWritable : kReadable;
  ++(write ? counting.written : counting.read);
  mprotect(it->begin + page * kPage, kPage, write ? PROT_READ | PROT_WRITE : PROT_READ);
  return true;
}

}  // namespace emulated_gpu
