#pragma once
// The memory of the emulated devices, and page-locked memory of the host.

#include <cstddef>
#include <functional>

namespace emulated_gpu {

struct Allocation {
  char* memory;
  size_t bytes;
  int device;     // -1: host
  char* mapping;  // pages around it
  size_t mapped;
  bool open;
  bool registered = false;  // host memory that RegisterHost page-locked
};

// Returns null if not enough memory is left. Memory is filled with 0xFF; device memory ends as
// close to the end of its pages as an alignment to 256 allows.
void* AllocateDevice(int device, size_t bytes);
void* AllocateHost(size_t bytes);
// Returns the allocation that holds the address, or null.
const Allocation* FindDevice(const void* address);
const Allocation* FindHost(const void* address);
// Calls `f` for each allocation in the order of addresses.
void ForDeviceAllocations(const std::function<void(const Allocation&)>& f);
// Frees `memory`, which the Allocate function must have returned. Adds a problem if device code
// wrote around it.
void FreeDeviceMemory(void* memory);
void FreeHostMemory(void* memory);
// RegisterHost page-locks host memory from another allocator until UnregisterHost. The first
// returns false if some of it was page-locked already, the second if `memory` was not registered.
bool RegisterHost(void* memory, size_t bytes);
bool UnregisterHost(void* memory);
// Returns whether the address belongs to the range of device memory, allocated or not.
bool IsDeviceAddress(const void* address);
// Returns whether host memory is mapped at the address that is not page-locked.
bool IsPageable(const void* address);
size_t FreeBytes(int device);

// Makes the memory of the devices in the set (bit n: device n) accessible and all other device
// memory inaccessible.
void OpenDevices(unsigned devices);

// Makes the memory of `devices` accessible until its end, and then closes all device memory.
class DeviceAccess {
 public:
  explicit DeviceAccess(unsigned devices) { OpenDevices(devices); }
  ~DeviceAccess() { OpenDevices(0); }
};

}  // namespace emulated_gpu
