#include "check_nets.h"

#include <algorithm>
#include <utility>

#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/net/compile.h"
#include "trainer/net/learning.h"
#include "trainer/net/test_nets.h"
#include "trainer/optim/objective.h"

namespace trainer {
namespace {

constexpr size_t kLargest = 3;

PlannedNet DescribePlan(const Graph& graph) {
  PlannedNet plan;
  plan.good = true;
  plan.activations = graph.memory.arena_bytes;
  plan.staging = StagingBytes(graph);
  const auto& buffers = graph.memory.buffers;
  plan.largest.assign(buffers.begin(), buffers.end());
  std::ranges::stable_sort(plan.largest, std::greater(), &Buffer::bytes);
  plan.largest.resize(std::min(plan.largest.size(), kLargest));
  plan.readers = LabelReadersOf(graph);
  return plan;
}

// Returns the names and sizes of the largest activations, separated by commas.
std::string LargestBuffersText(const PlannedNet& plan) {
  std::vector<std::string> names;
  for (const Buffer& block : plan.largest) {
    names.push_back(Join(EscapeControl(block.name), " ", Bytes(block.bytes)));
  }
  return JoinList(names);
}

// A line of the memory figures.
struct MemoryLine {
  std::string name;
  size_t bytes = 0;
};

// Returns the items, the largest first. Each net has its own line of activations, with its
// largest ones.
std::vector<MemoryLine> MemoryLines(const std::vector<MemoryItem>& items,
                                    const std::vector<PreflightNet>& nets,
                                    const PlannedNets& plan) {
  std::vector<MemoryLine> lines;
  for (const MemoryItem& item : items) {
    if (std::string_view(item.key) != "values") {
      lines.push_back({item.name, item.bytes});
      continue;
    }
    for (size_t i = 0; i < nets.size(); ++i) {
      const PlannedNet& net = plan.nets[i];
      lines.push_back({Join("values of the ", nets[i].title,
                            net.good ? Join(" (", LargestBuffersText(net), ")") : std::string()),
                       net.activations - net.staging});
    }
  }
  std::erase_if(lines, [](const MemoryLine& line) { return line.bytes == 0; });
  std::ranges::stable_sort(lines, std::greater(), &MemoryLine::bytes);
  return lines;
}

// Compares the sum of `lines` with the memory of the host or GPU, and adds both to the report.
// `figure` is their key there. Warns if only too little is free now; if there is too little in all,
// adds an error and returns false. A total of 0 means that the memory is unknown.
bool ReportMemory(const char* figure, const std::vector<MemoryLine>& lines, const HostMemory& room,
                  PreflightReport* report) {
  size_t planned = 0;
  std::vector<std::string> texts;
  Json list = Json::Array();
  for (const MemoryLine& line : lines) {
    planned += line.bytes;
    texts.push_back(Join(line.name, " ", Bytes(line.bytes)));
    list.Push(Json::Object().Set("name", line.name).Set("bytes", line.bytes));
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

PreflightDevice MakePreflightDevice(const DeviceChoice& choice, Diagnostics* diagnostics) {
  PreflightDevice checked;
  if (!diagnostics->Collect([&] { checked.device = MakeDevice(choice); })) {
    checked.device = MakeDevice();
  }
  if (checked.device->kind() == DeviceKind::kCpu) return checked;
  for (const GpuInfo& gpu : FindGpus().gpus) {
    if (gpu.id != choice.gpu.id) continue;
    checked.gpu_memory = {gpu.memory_bytes, gpu.free_bytes, Join("GPU ", gpu.id)};
  }
  return checked;
}

bool PlannedNets::good() const {
  return std::ranges::all_of(nets, [](const PlannedNet& plan) { return plan.good; });
}

PlannedNets PlanNets(const std::vector<PreflightNet>& nets, const SolverSpec* spec,
                     const Optimizer* rule, const Device& device, PreflightReport* report) {
  PlannedNets plan;
  ParamStore params(device);
  std::vector<TestGraphs> planned;  // all at once, as they will run
  const Graph* train = nullptr;
  for (const PreflightNet& checked : nets) {
    PlannedNet& one = plan.nets.emplace_back();
    if (checked.spec == nullptr) continue;
    ErrorCollector errors;
    NetOptions options = checked.options;
    options.log = false;
    errors.Try([&] {
      TestGraphs& graphs = planned.emplace_back();
      if (checked.one_exact_pass) {
        graphs = CompileTest(*checked.spec, options, device, params, 0);
      } else {
        graphs.whole = Compile(*checked.spec, options, device, params);
      }
      one = DescribePlan(*graphs.whole);
      plan.memory.AddNet(*graphs.whole);
      if (checked.options.training) train = graphs.whole.get();
      if (graphs.rest == nullptr) return;
      one.activations += graphs.rest->memory.arena_bytes;
      one.staging += StagingBytes(*graphs.rest);
      plan.memory.AddNet(*graphs.rest);
    });
    report->diagnostics.Add(errors.errors());
  }
  plan.memory.weights = params.RequiredBytes();
  if (train == nullptr) return plan;
  plan.memory.gradients = GradientBytes(*train);
  if (rule == nullptr) return plan;
  plan.memory.SetRun(*spec, *rule, *train, spec->proto.virtual_ranks());
  plan.memory.weights = params.RequiredBytes();
  return plan;
}

bool CheckMemory(const std::vector<PreflightNet>& nets, const PlannedNets& plan,
                 const PreflightDevice& device, PreflightReport* report) {
  const bool on_gpu = device.device->kind() != DeviceKind::kCpu;
  const std::vector<MemoryItem> of_cpu = plan.memory.Items({});
  if (!on_gpu)
    return ReportMemory("memory", MemoryLines(of_cpu, nets, plan), ReadHostMemory(), report);
  const std::vector<MemoryItem> of_gpu = plan.memory.Items({.gpu = true, .name = ""});
  std::vector<MemoryItem> of_host;  // also where a GPU computes
  for (const MemoryItem& item : of_cpu) {
    const std::string_view key = item.key;
    if (key == "ahead" || key == "snapshot" || key == "program") of_host.push_back(item);
  }
  const bool gpu_fits =
      ReportMemory("gpu_memory", MemoryLines(of_gpu, nets, plan), device.gpu_memory, report);
  return ReportMemory("memory", MemoryLines(of_host, nets, plan), ReadHostMemory(), report) &&
         gpu_fits;
}

void ReportLearning(const Net& net, int unfreeze_at, PreflightReport* report) {
  const LearningCount learning = LearningCounts(net), all = LearnableCounts(net);
  const std::vector<std::string> names = FrozenLayers(net);
  Json frozen = Json::Array();
  for (const std::string& layer : names) frozen.Push(layer);
  std::string text = DescribeLearning(net);
  if (unfreeze_at > 0 && !names.empty())
    text += Join("; all learn from iteration ", unfreeze_at, " on");
  report->lines.emplace_back("learning", EscapeControl(text));
  report->figures.Set("learning", Json::Object()
                                      .Set("layers", all.layers)
                                      .Set("learned_layers", learning.layers)
                                      .Set("weights", all.weights)
                                      .Set("learned_weights", learning.weights)
                                      .Set("frozen", std::move(frozen))
                                      .Set("unfreeze_at", unfreeze_at));
}

}  // namespace trainer
