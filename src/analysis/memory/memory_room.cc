#include "trainer/analysis/memory/memory_room.h"

#include "trainer/backend/device/available_memory.h"
#include "trainer/base/error/error.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {

MemoryRoom UnlimitedRoom(const Device& device) { return {.gpu = device.IsAsync(), .name = ""}; }

MemoryRoom ResolveHostRoom(const std::string& limit) {
  if (limit == "none") return {};
  if (limit.empty()) {
    const HostMemory given = ReadHostMemory();
    return {.bytes = given.total, .name = Join(given.limit, ", ", Bytes(given.total))};
  }
  const std::optional<size_t> bytes = ParseBytes(limit);
  if (!bytes) {
    throw Error(ErrorCode::kUsage,
                Join("--limit=", limit,
                     ": not a memory size; give the memory of a run, such as 16GiB, or none"));
  }
  return {.bytes = *bytes, .name = Bytes(*bytes)};
}

MemoryRoom ResolveGpuRoom(const Device& device, int id) {
  const size_t bytes = device.AvailableBytes();
  return {.gpu = true, .bytes = bytes, .name = Join("GPU ", id, ", with ", Bytes(bytes), " free")};
}

MemoryRoom ResolvePlannedGpuRoom(const std::string& size) {
  MemoryRoom room = {.gpu = true, .estimated = true, .name = ""};
  if (size.empty()) return room;
  const std::optional<size_t> bytes = ParseBytes(size);
  if (!bytes) {
    throw Error(ErrorCode::kUsage, Join("--gpu=", size,
                                        ": give the memory of a GPU, such as 16GiB, or the number "
                                        "of a GPU of this machine, such as 0"));
  }
  room.bytes = *bytes;
  room.name = Bytes(*bytes);
  return room;
}

std::optional<size_t> ParseMemoryLimit(const std::string& text, const Device& device) {
  if (text.empty() || text == "shared" || text == "separate" || text == "poisoned") {
    return std::nullopt;
  }
  if (text == "auto") return FindAvailableMemory(device).bytes;
  if (const std::optional<size_t> size = ParseBytes(text); size && *size > 0) return size;
  throw Error(ErrorCode::kUsage,
              Join("--memory=", EscapeControl(text),
                   ": not a memory size; give the memory of a run, such as 8GiB, or auto"));
}

}  // namespace trainer
