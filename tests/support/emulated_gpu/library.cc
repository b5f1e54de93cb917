#include "support/emulated_gpu/library.h"

#include <cmath>

#include "support/emulated_gpu/memory.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu {
namespace {

std::vector<std::string>& Refused() {
  static auto* const refused = new std::vector<std::string>;
  return *refused;
}

int StatusOf(const Call& call, const char* name, int refused, int broken) {
  ++TheCounters().calls_to_libraries;
  if (Broken() != 0) return broken;
  if (call.error() != 0) return call.error();
  for (const std::string& prefix : Refused()) {
    if (std::string_view(name).starts_with(prefix)) return refused;
  }
  return 0;
}

}  // namespace

LibraryCall::LibraryCall(const char* name, int refused, int broken)
    : lock_(Mutex()), status_(StatusOf(Call(CallKind::kLibrary), name, refused, broken)) {}

bool IsOperand(int device, const void* memory, size_t bytes, const std::string& what) {
  const Allocation* const a = FindDevice(memory);
  if (a == nullptr || a->device != device) {
    AddProblem(what + ": not memory of the device");
    return false;
  }
  const size_t offset = static_cast<size_t>(static_cast<const char*>(memory) - a->memory);
  if (bytes <= a->bytes - offset) return true;
  AddProblem(trainer::Join(what, ": ", bytes, " bytes at offset ", offset, " of an allocation of ",
                           a->bytes));
  return false;
}

bool IsWorkspaceAligned(const void* workspace, const std::string& what) {
  const auto rest = reinterpret_cast<uintptr_t>(workspace) % 256;
  if (rest != 0) {
    AddProblem(trainer::Join("the workspace of ", what, ": ", rest,
                             " bytes behind a multiple of 256 bytes"));
  }
  return rest == 0;
}

bool IsCurrent(int device, const std::string& what) {
  if (device == CurrentDevice()) return true;
  AddProblem(trainer::Join(what, ": the handle is of device ", device,
                           ", and the thread uses device ", CurrentDevice()));
  return false;
}

float RoundToTf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000u) & ~0x1fffu;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

float Jitter(float value) {
  const uint64_t choice = TheRandom().Below(3);
  return choice == 0 ? value : std::nextafter(value, choice == 1 ? INFINITY : -INFINITY);
}

void RefuseLibraryCalls(const std::string& prefix) {
  const std::scoped_lock lock(Mutex());
  Refused().push_back(prefix);
}

namespace state_internal {
void AcceptLibraryCalls() { Refused().clear(); }
}  // namespace state_internal

}  // namespace emulated_gpu
