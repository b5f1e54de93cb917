#include "plan_gpu.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "device_flags.h"
#include "trainer/backend/plan_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kAny[] = "any";  // --gpu alone

bool IsNumber(const std::string& text) {
  return text == "all" || text.find_first_not_of("0123456789,") == std::string::npos;
}

PlanTarget OnGpu(const Flags& flags) {
  DeviceChoice choice;
  choice.kind = DeviceKind::kCuda;
  choice.flag = "--gpu=" + flags.Text("gpu");
  choice.gpu.id = GpuOf(flags).value_or(0);
  PlanTarget target;
  target.gpu = true;
  target.device = MakeDevice(choice);
  target.room = target.device->FreeBytes();
  target.room_name = Join("GPU ", choice.gpu.id, ", with ", Bytes(target.room), " free");
  return target;
}

PlanTarget OnCpu(const Flags& flags) {
  PlanTarget target;
  target.device = MakeDevice();
  const std::string& text = flags.Text("limit");
  if (text == "none") return target;
  if (flags.Has("limit")) {
    const std::optional<size_t> room = ParseBytes(text);
    if (!room) {
      throw Error(ErrorCode::kUsage,
                  Join("--limit=", text,
                       ": not a memory size; give the memory of a run, such as 16GiB, or none"));
    }
    target.room = *room;
    target.room_name = Bytes(*room);
    return target;
  }
  const HostMemory given = ReadHostMemory();
  target.room = given.total;
  target.room_name = Join(given.limit, ", ", Bytes(given.total));
  return target;
}

// The batch for which what grows with it leaves the rest its room; 0 where not one item fits.
int64_t BatchThatFits(size_t room, const std::vector<PlannedPart>& parts, int64_t batch) {
  size_t fixed = 0, grows = 0;
  for (const PlannedPart& part : parts) (part.grows ? grows : fixed) += part.bytes;
  if (fixed >= room || grows == 0) return 0;
  return static_cast<int64_t>(static_cast<double>(room - fixed) * static_cast<double>(batch) /
                              static_cast<double>(grows));
}

}  // namespace

size_t Sum(const std::vector<PlannedPart>& parts) {
  size_t sum = 0;
  for (const PlannedPart& part : parts) sum += part.bytes;
  return sum;
}

Flag PlanGpuFlag() {
  return {.name = "gpu",
          .value = "SIZE|ID",
          .help =
              "plan for a GPU: one with this memory, such as 16GiB, or a GPU of this machine, such "
              "as 0; without a value, this machine needs no GPU",
          .bare = kAny};
}

Flag PlanLimitFlag() {
  return {.name = "limit",
          .value = "SIZE",
          .help =
              "memory limit of a run on the CPU, such as 64GiB for another machine; none: no "
              "limit. Default: the memory that this process may use, by the machine, its control "
              "groups, the Slurm job and ulimit -v"};
}

PlanTarget TargetOf(const Flags& flags) {
  PlanTarget target;
  if (!flags.Has("gpu")) return OnCpu(flags);
  if (flags.Has("limit")) {
    throw Error(ErrorCode::kUsage,
                "--limit is for the CPU; give the memory of a GPU with --gpu=16GiB");
  }
  const std::string& text = flags.Text("gpu");
  if (IsNumber(text)) return OnGpu(flags);
  target.gpu = target.estimated = true;
  target.device = MakePlanDevice();
  if (text == kAny) return target;
  const std::optional<size_t> room = ParseBytes(text);
  if (!room) {
    throw Error(ErrorCode::kUsage, Join("--gpu=", text,
                                        ": give the memory of a GPU, such as 16GiB, or the number "
                                        "of a GPU of this machine, such as 0"));
  }
  target.room = *room;
  target.room_name = Bytes(*room);
  return target;
}

std::string TotalsText(const std::vector<PlannedPart>& parts) {
  std::vector<PlannedPart> sorted = parts;
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &PlannedPart::bytes);
  std::string text;
  for (const PlannedPart& part : sorted) {
    constexpr size_t kWidth = 10;
    const std::string bytes = Bytes(part.bytes);
    if (part.bytes == 0) continue;
    text += Join(std::string(kWidth - std::min(kWidth, bytes.size()), ' '), bytes, "  ", part.name,
                 "\n");
  }
  return text;
}

Json TotalsJson(const std::vector<PlannedPart>& parts) {
  Json json = Json::Object();
  for (const PlannedPart& part : parts) json.Set(part.key, part.bytes);
  return json.Set("together", Sum(parts));
}

size_t StagedBytes(const Net& net) {
  size_t bytes = 0;
  for (const PlannedBlock& block : net.memory_plan().blocks) {
    if (block.kind == BlockKind::kStaging) bytes += block.bytes;
  }
  return bytes;
}

int64_t BatchOf(const Net& net) {
  for (int i = 0; i < net.NumLayers(); ++i) {
    const caffe::LayerParameter& layer = net.LayerAt(i).proto();
    if (layer.bottom_size() > 0 || layer.top_size() == 0) continue;
    const Shape& shape = net.Value(layer.top(0)).shape;
    if (shape.Rank() > 0) return shape[0];
  }
  return 0;
}

Verdict Judge(const PlanTarget& target, const std::vector<PlannedPart>& parts, int64_t batch) {
  Verdict verdict;
  const size_t needed = Sum(parts);
  verdict.text = Join(Bytes(needed), " of memory");
  if (target.room == 0) return verdict;
  verdict.fits = needed <= target.room;
  const int64_t most = verdict.batch_that_fits =
      batch > 0 ? BatchThatFits(target.room, parts, batch) : 0;
  verdict.text += Join(verdict.fits ? " fits into " : " does not fit into ", target.room_name);
  if (most > 0 && most != batch) {
    verdict.text += Join(verdict.fits ? "; so does a batch of " : "; a batch of ", most,
                         verdict.fits ? "" : " would fit");
  } else if (!verdict.fits && batch > 0 && most == 0) {
    verdict.text += "; no batch would fit";
  }
  verdict.json = Json::Object()
                     .Set("room_bytes", target.room)
                     .Set("fits", verdict.fits)
                     .Set("batch", batch)
                     .Set("batch_that_fits", most);
  return verdict;
}

}  // namespace trainer
