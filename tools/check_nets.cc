#include <algorithm>

#include "check_report.h"
#include "plan_parts.h"
#include "table.h"
#include "trainer/base/host_memory.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr size_t kLargest = 3;

NetPlan Describe(const Net& net) {
  NetPlan plan;
  plan.good = true;
  plan.value_bytes = net.memory_plan().arena_bytes;
  plan.ahead_bytes = AheadBytes(net);
  plan.largest = net.memory_plan().blocks;
  std::ranges::stable_sort(plan.largest, std::greater(), &PlannedBlock::bytes);
  plan.largest.resize(std::min(plan.largest.size(), kLargest));
  for (const LabelUse& use : LabelUses(net)) {
    if (use.source < 0) continue;
    const LayerSpec& layer = net.LayerAt(use.layer);
    plan.readers.push_back({net.LayerAt(use.source).name(),
                            Join("layer '", layer.name(), "' (", layer.type(), ")"), use});
  }
  return plan;
}

std::string Largest(const NetPlan& plan) {
  std::vector<std::string> names;
  for (const PlannedBlock& block : plan.largest) {
    names.push_back(Join(EscapeControl(block.name), " ", Bytes(block.bytes)));
  }
  return JoinList(names);
}

// Compares what is held with the room there is. `figure` is the name of both in the report.
bool Compare(const char* figure, const std::vector<MemoryHolder>& holders, const HostMemory& room,
             CheckReport* report) {
  size_t planned = 0;
  std::vector<std::string> texts;
  Json list = Json::Array();
  for (const MemoryHolder& holder : holders) {
    planned += holder.bytes;
    texts.push_back(Join(holder.name, " ", Bytes(holder.bytes)));
    list.Push(Json::Object().Set("name", holder.name).Set("bytes", holder.bytes));
  }
  report->figures.Set(figure, Json::Object()
                                  .Set("planned_bytes", planned)
                                  .Set("total_bytes", size_t{room.total})
                                  .Set("available_bytes", size_t{room.available})
                                  .Set("limit", room.limit)
                                  .Set("holders", std::move(list)));
  const bool of_gpu = std::string_view(figure) != "memory";
  const std::string kind = of_gpu ? "GPU memory" : "memory";
  report->lines.emplace_back(
      kind, Join(Bytes(planned), ", ", Bytes(room.available), " are free: ", JoinList(texts)));
  if (!report->memory.empty()) report->memory += ", ";
  report->memory += Join(Bytes(planned), " of ", kind);
  if (room.total == 0 || planned <= room.available) return true;
  const bool fits = planned <= room.total;
  const std::string message = Join(
      "the run takes ", Bytes(planned), " of ", kind, " and ",
      fits ? Join("only ", Bytes(room.available), " are free now")
           : Join(room.limit, " has ", Bytes(room.total)),
      "; the largest parts: ", JoinList(std::span(texts).first(std::min(texts.size(), kLargest))),
      ". Lower batch_size", of_gpu ? "" : " or prefetch", fits ? ", or end other programs" : "");
  if (fits) {
    report->findings.Warn(message);
  } else {
    report->findings.Add(Error(ErrorCode::kResource, message));
  }
  return fits;
}

}  // namespace

bool RunPlan::good() const {
  return std::ranges::all_of(nets, [](const NetPlan& plan) { return plan.good; });
}

RunPlan PlanNets(const std::vector<CheckedNet>& nets, const Device& device, CheckReport* report) {
  RunPlan plan;
  ParamStore params(device);
  std::vector<std::unique_ptr<Net>> planned;  // all at once, as they will run
  for (const CheckedNet& checked : nets) {
    NetPlan& one = plan.nets.emplace_back();
    if (checked.spec == nullptr) continue;
    ErrorList errors;
    NetOptions options = checked.options;
    options.plan_only = true;
    options.log = false;
    AttemptAll(&errors, [&] {
      planned.push_back(std::make_unique<Net>(*checked.spec, options, device, params));
      one = Describe(*planned.back());
      if (!checked.options.training) return;
      for (const Param* param : planned.back()->params()) {
        if (param->lr_mult != 0) {
          plan.gradient_bytes += static_cast<size_t>(param->count()) * sizeof(float);
        }
      }
    });
    report->findings.Add(errors);
  }
  plan.weight_bytes = params.PlannedBytes();
  return plan;
}

bool CheckMemory(const std::vector<CheckedNet>& nets, const RunPlan& plan,
                 const std::vector<MemoryHolder>& more, const CheckedDevice& device,
                 CheckReport* report) {
  std::vector<MemoryHolder> holders = {{"weights", plan.weight_bytes},
                                       {"gradients", plan.gradient_bytes}};
  holders.insert(holders.end(), more.begin(), more.end());
  size_t ahead = 0;
  for (size_t i = 0; i < nets.size(); ++i) {
    std::string name = "values of the " + nets[i].title;
    if (plan.nets[i].good) name += Join(" (", Largest(plan.nets[i]), ")");
    holders.push_back({name, plan.nets[i].value_bytes});
    ahead += plan.nets[i].ahead_bytes;
  }
  holders.push_back({"batches read ahead", ahead, true});
  std::erase_if(holders, [](const MemoryHolder& holder) { return holder.bytes == 0; });
  std::ranges::stable_sort(holders, std::greater(), &MemoryHolder::bytes);
  if (device.device->kind() == DeviceKind::kCpu) {
    return Compare("memory", holders, ReadHostMemory(), report);
  }
  std::vector<MemoryHolder> of_host, of_gpu;
  for (const MemoryHolder& holder : holders) {
    (holder.on_host ? of_host : of_gpu).push_back(holder);
  }
  const bool gpu_fits = Compare("gpu_memory", of_gpu, device.gpu_memory, report);
  return Compare("memory", of_host, ReadHostMemory(), report) && gpu_fits;
}

}  // namespace trainer
