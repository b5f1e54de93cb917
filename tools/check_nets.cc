#include <algorithm>

#include "check_report.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/net/test_nets.h"
#include "trainer/steps/part_sums.h"

namespace trainer {
namespace {

constexpr size_t kLargest = 3;

NetPlan Describe(const Net& net) {
  NetPlan plan;
  plan.good = true;
  plan.value_bytes = net.memory_plan().arena_bytes;
  plan.staged_bytes = StagingBytes(net);
  plan.largest = net.memory_plan().blocks;
  std::ranges::stable_sort(plan.largest, std::greater(), &PlannedBlock::bytes);
  plan.largest.resize(std::min(plan.largest.size(), kLargest));
  plan.readers = LabelReadersOf(net);
  return plan;
}

std::string Largest(const NetPlan& plan) {
  std::vector<std::string> names;
  for (const PlannedBlock& block : plan.largest) {
    names.push_back(Join(EscapeControl(block.name), " ", Bytes(block.bytes)));
  }
  return JoinList(names);
}

// What a run holds.
struct MemoryHolder {
  std::string name;
  size_t bytes = 0;
};

// The parts, the largest first; in place of the values of all nets those of each, with the largest.
std::vector<MemoryHolder> HoldersOf(const std::vector<MemoryItem>& parts,
                                    const std::vector<CheckedNet>& nets, const RunPlan& plan) {
  std::vector<MemoryHolder> holders;
  for (const MemoryItem& part : parts) {
    if (std::string_view(part.key) != "values") {
      holders.push_back({part.name, part.bytes});
      continue;
    }
    for (size_t i = 0; i < nets.size(); ++i) {
      const NetPlan& net = plan.nets[i];
      holders.push_back({Join("values of the ", nets[i].title,
                              net.good ? Join(" (", Largest(net), ")") : std::string()),
                         net.value_bytes - net.staged_bytes});
    }
  }
  std::erase_if(holders, [](const MemoryHolder& holder) { return holder.bytes == 0; });
  std::ranges::stable_sort(holders, std::greater(), &MemoryHolder::bytes);
  return holders;
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
      "the run needs ", Bytes(planned), " of ", kind, " and ",
      fits ? Join("only ", Bytes(room.available), " are free now")
           : Join(room.limit, " has ", Bytes(room.total)),
      "; the largest parts: ", JoinList(std::span(texts).first(std::min(texts.size(), kLargest))),
      ". Lower batch_size", of_gpu ? "" : " or prefetch", fits ? ", or stop other programs" : "");
  if (fits) {
    report->diagnostics.Warn(message);
  } else {
    report->diagnostics.Add(Error(ErrorCode::kResource, message));
  }
  return fits;
}

}  // namespace

bool RunPlan::good() const {
  return std::ranges::all_of(nets, [](const NetPlan& plan) { return plan.good; });
}

RunPlan PlanNets(const std::vector<CheckedNet>& nets, const SolverSpec* spec, const StepRule* rule,
                 const Device& device, CheckReport* report) {
  RunPlan plan;
  ParamStore params(device);
  std::vector<std::unique_ptr<TestNets>> tests;
  std::vector<std::unique_ptr<Net>> planned;  // all at once, as they will run
  const Net* train = nullptr;
  for (const CheckedNet& checked : nets) {
    NetPlan& one = plan.nets.emplace_back();
    if (checked.spec == nullptr) continue;
    ErrorList errors;
    NetOptions options = checked.options;
    options.plan_only = true;
    options.log = false;
    AttemptAll(&errors, [&] {
      if (checked.one_exact_pass) {
        tests.push_back(std::make_unique<TestNets>(*checked.spec, options, device, params, 0));
        planned.push_back(tests.back()->TakeNet());
      } else {
        planned.push_back(std::make_unique<Net>(*checked.spec, options, device, params));
      }
      one = Describe(*planned.back());
      plan.memory.AddNet(*planned.back());
      if (checked.options.training) train = planned.back().get();
      if (!checked.one_exact_pass || tests.back()->rest() == nullptr) return;
      const Net& last_batch = *tests.back()->rest();
      one.value_bytes += last_batch.memory_plan().arena_bytes;
      one.staged_bytes += StagingBytes(last_batch);
      plan.memory.AddNet(last_batch);
    });
    report->diagnostics.Add(errors);
  }
  plan.memory.weights = params.PlannedBytes();
  if (train == nullptr) return plan;
  plan.memory.gradients = GradientBytes(*train);
  if (rule == nullptr) return plan;
  plan.memory.SetRun(*spec, *rule, *train, spec->proto.virtual_ranks());
  plan.memory.weights = params.PlannedBytes();
  return plan;
}

bool CheckMemory(const std::vector<CheckedNet>& nets, const RunPlan& plan,
                 const CheckedDevice& device, CheckReport* report) {
  const bool on_gpu = device.device->kind() != DeviceKind::kCpu;
  const std::vector<MemoryItem> of_cpu = plan.memory.Items({});
  if (!on_gpu) return Compare("memory", HoldersOf(of_cpu, nets, plan), ReadHostMemory(), report);
  const std::vector<MemoryItem> of_gpu = plan.memory.Items({.gpu = true, .name = ""});
  std::vector<MemoryItem> of_host;  // also where a GPU computes
  for (const MemoryItem& part : of_cpu) {
    const std::string_view key = part.key;
    if (key == "ahead" || key == "snapshot" || key == "program") of_host.push_back(part);
  }
  const bool gpu_fits =
      Compare("gpu_memory", HoldersOf(of_gpu, nets, plan), device.gpu_memory, report);
  return Compare("memory", HoldersOf(of_host, nets, plan), ReadHostMemory(), report) && gpu_fits;
}

}  // namespace trainer
