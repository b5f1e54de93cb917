#include "trainer/backend/device/available_memory.h"

#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/text.h"

namespace trainer {

AvailableMemory FindAvailableMemory(const Device& device) {
  const AvailableMemory whole = {device.AvailableBytes(),
                                 Join("the device (", device.Describe(), ")")};
  if (device.IsAsync()) return whole;
  const HostMemory given = ReadHostMemory();
  if (given.total == 0 || given.total >= whole.bytes) return whole;
  return {given.total, given.limit};
}

}  // namespace trainer
