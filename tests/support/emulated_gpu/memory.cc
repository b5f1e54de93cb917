#include "support/emulated_gpu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include "support/emulated_gpu/segfault.h"
#include "support/emulated_gpu/state.h"
#include "trainer/base/text/text.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace emulated_gpu {
namespace {

using trainer::Join;

constexpr size_t kPage = 4096, kAlignment = 256;
constexpr size_t kRegion = size_t{1} << 40;

struct Memory {
  char* region;  // inaccessible addresses, each handed out once
  size_t used = 0;
  std::map<uintptr_t, Allocation> device, host;  // by the first address
  std::map<int, size_t> allocated;
  unsigned open = 0;

  Memory() {
    void* const at =
        mmap(nullptr, kRegion, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    region = static_cast<char*>(at);
    ExplainSegfaults();
  }
};

Memory& Get() {
  static Memory* const memory = new Memory;
  return *memory;
}

size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }
uintptr_t Number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

const Allocation* Find(const std::map<uintptr_t, Allocation>& all, const void* address) {
  auto it = all.upper_bound(Number(address));
  if (it == all.begin()) return nullptr;
  --it;
  return Number(address) < it->first + it->second.bytes ? &it->second : nullptr;
}

void Protect(Allocation& a, bool open) {
  if (a.open == open) return;
  a.open = open;
  mprotect(a.mapping, a.mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

bool AllPoison(const char* from, const char* to) {
  for (; from < to; ++from) {
    if (*from != '\xff') return false;
  }
  return true;
}

#ifdef __SANITIZE_ADDRESS__
void PoisonAround(const Allocation& a) {
  __asan_poison_memory_region(a.mapping, static_cast<size_t>(a.memory - a.mapping));
  __asan_poison_memory_region(a.memory + a.bytes,
                              static_cast<size_t>(a.mapping + a.mapped - a.memory) - a.bytes);
}
void Unpoison(const Allocation& a) { __asan_unpoison_memory_region(a.mapping, a.mapped); }
#else
void PoisonAround(const Allocation&) {}
void Unpoison(const Allocation&) {}
#endif

}  // namespace

void* AllocateDevice(int device, size_t bytes) {
  Memory& memory = Get();
  const size_t rounded = RoundUp(bytes, kAlignment), mapped = RoundUp(rounded, kPage);
  if (bytes > kRegion || rounded > FreeBytes(device)) return nullptr;
  if (memory.used + mapped + 2 * kPage > kRegion) {
    AddProblem("the emulated GPU has used up its addresses, which never come back");
    return nullptr;
  }
  char* const mapping = memory.region + memory.used + kPage;
  memory.used += mapped + kPage;
  Allocation a{mapping + mapped - rounded, bytes, device, mapping, mapped, false};
  // Memory is opened and closed around each kernel. The system does that page by page, which took
  // nearly all the time of large nets with pages of 4 KiB. On systems without huge pages, this
  // fails.
  madvise(mapping, mapped, MADV_HUGEPAGE);
  Protect(a, true);
  std::memset(mapping, 0xff, mapped);
  PoisonAround(a);
  Protect(a, (memory.open >> device & 1) != 0);
  memory.allocated[device] += rounded;
  memory.device.emplace(Number(a.memory), a);
  return a.memory;
}

void* AllocateHost(size_t bytes) {
  char* const at = static_cast<char*>(std::aligned_alloc(kAlignment, RoundUp(bytes, kAlignment)));
  if (at == nullptr) return nullptr;
  std::memset(at, 0xff, bytes);
  Get().host.emplace(Number(at), Allocation{at, bytes, -1, at, bytes, true});
  return at;
}

const Allocation* FindDevice(const void* address) { return Find(Get().device, address); }
const Allocation* FindHost(const void* address) { return Find(Get().host, address); }

void ForDeviceAllocations(const std::function<void(const Allocation&)>& f) {
  for (const auto& [address, a] : Get().device) f(a);
}

void FreeDeviceMemory(void* address) {
  Memory& memory = Get();
  const auto it = memory.device.find(Number(address));
  Allocation& a = it->second;
  Unpoison(a);
  Protect(a, true);
  if (!AllPoison(a.mapping, a.memory)) {
    AddProblem(Join("device code wrote before the begin of an allocation of ", a.bytes, " bytes"));
  }
  if (!AllPoison(a.memory + a.bytes, a.mapping + a.mapped)) {
    AddProblem(Join("device code wrote behind the end of an allocation of ", a.bytes, " bytes"));
  }
  mmap(a.mapping, a.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
       0);
  memory.allocated[a.device] -= RoundUp(a.bytes, kAlignment);
  memory.device.erase(it);
}

void FreeHostMemory(void* address) {
  Get().host.erase(Number(address));
  std::free(address);
}

bool RegisterHost(void* memory, size_t bytes) {
  auto* const at = static_cast<char*>(memory);
  const Allocation* const before = FindHost(at + bytes - 1);
  if (FindHost(at) != nullptr || before != nullptr) return false;
  return Get().host.emplace(Number(at), Allocation{at, bytes, -1, at, bytes, true, true}).second;
}

bool UnregisterHost(void* memory) {
  const auto it = Get().host.find(Number(memory));
  if (it == Get().host.end() || !it->second.registered) return false;
  Get().host.erase(it);
  return true;
}

bool IsDeviceAddress(const void* address) {
  return Number(address) - Number(Get().region) < kRegion;
}

bool IsPageable(const void* address) {
  if (IsDeviceAddress(address) || FindHost(address) != nullptr) return false;
  unsigned char resident;
  return mincore(reinterpret_cast<void*>(Number(address) & ~(kPage - 1)), 1, &resident) == 0;
}

size_t FreeBytes(int device) {
  const size_t total = OptionsOf(device).memory_bytes;
  const size_t allocated = Get().allocated[device];
  return total > allocated ? total - allocated : 0;
}

void OpenDevices(unsigned devices) {
  Memory& memory = Get();
  if (memory.open == devices) return;
  memory.open = devices;
  for (auto& [address, a] : memory.device) Protect(a, (devices >> a.device & 1) != 0);
}

std::string DescribeAddress(const void* address) {
  const auto& all = Get().device;
  const auto next = all.upper_bound(Number(address));
  if (next == all.begin()) return "no allocation's";
  const Allocation& a = std::prev(next)->second;
  const size_t offset = Number(address) - Number(a.memory);
  if (offset < a.bytes) return Join(offset, " bytes into an allocation of ", a.bytes, " bytes");
  if (offset < a.bytes + kPage) {
    return Join(offset - a.bytes, " bytes behind the end of an allocation of ", a.bytes, " bytes");
  }
  return "no allocation's, maybe of one that was freed";
}

size_t AllocatedBytes(int device) {
  const std::scoped_lock lock(Mutex());
  return Get().allocated[device];
}

std::vector<std::string> Leaks() {
  const std::scoped_lock lock(Mutex());
  std::vector<std::string> leaks;
  for (const auto& [address, a] : Get().device) {
    leaks.push_back(Join(a.bytes, " bytes on device ", a.device));
  }
  for (const auto& [address, a] : Get().host) leaks.push_back(Join(a.bytes, " bytes on the host"));
  return leaks;
}

void Peek(void* to, const void* device_memory, size_t bytes) {
  const std::scoped_lock lock(Mutex());
  const DeviceAccess access(~0u);
  std::memcpy(to, device_memory, bytes);
}

}  // namespace emulated_gpu
