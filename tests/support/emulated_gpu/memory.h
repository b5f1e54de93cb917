#pragma once
// The memory of the emulated devices, and page-locked memory of the host.

#include <cstddef>
#include <functional>

namespace emulated_gpu {

struct Allocation {
  char* memory;
  size_t bytes;
  int device;     // -1: of the host
  char* mapping;  // pages around it
  size_t mapped;
  bool open;
  bool registered = false;  // of the host: somebody else's, who page-locked it
};

// Null where the device has not as much left. Filled with 0xFF, at the end of its pages as far as
// an alignment to 256 allows.
void* AllocateDevice(int device, size_t bytes);
void* AllocateHost(size_t bytes);
// The allocation that holds the address; null without one.
const Allocation* FindDevice(const void* address);
const Allocation* FindHost(const void* address);
// By address.
void ForDeviceAllocations(const std::function<void(const Allocation&)>& f);
// `memory` must be what Allocate returned. Says what was written around it.
void FreeDeviceMemory(void* memory);
void FreeHostMemory(void* memory);
// Memory of the host from elsewhere counts as page-locked from here on, and no longer. Whether none
// of it was, or `memory` was what was registered.
bool RegisterHost(void* memory, size_t bytes);
bool UnregisterHost(void* memory);
// Whether it may be an address of a device's memory, allocated or not.
bool IsDeviceAddress(const void* address);
// Whether host memory is mapped there that is not page-locked.
bool IsPageable(const void* address);
size_t FreeBytes(int device);

// Makes the memory of the devices in the set (bit n: device n) accessible and that of all others
// not.
void OpenDevices(unsigned devices);

// "address 0x7f.. , 12 bytes behind an allocation of 256 bytes" for messages
class DeviceAccess {  // until its end, and then of none
 public:
  explicit DeviceAccess(unsigned devices) { OpenDevices(devices); }
  ~DeviceAccess() { OpenDevices(0); }
};

}  // namespace emulated_gpu
