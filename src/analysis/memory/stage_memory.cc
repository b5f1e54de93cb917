#include "trainer/analysis/memory/stage_memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/net/compile.h"
#include "trainer/optim/optimizer.h"
#include "trainer/strategies/pipeline_plan.h"

namespace trainer {
namespace {

// Returns the bytes of the buffers in which the stage sends and receives tensors: one for each
// batch in flight.
size_t ExchangedBytes(const PipelinePlan& plan, int stage) {
  size_t bytes = 0;
  for (size_t net = 0; net < plan.nets.size(); ++net) {
    for (const StageTransfer& value : plan.nets[net].values) {
      const size_t slots = static_cast<size_t>(plan.UnderWay(value.from)) * value.bytes();
      if (value.from == stage) bytes += slots;
      if (value.to == stage && net == 0 && value.has_gradient) bytes += slots;
    }
  }
  return bytes;
}

// Compiles the part of each net that the stage computes, and adds up its memory. The first stage
// also holds the copy of all weights and states that a snapshot is written from.
StageEstimate EstimateStage(const SolverSpec& whole, const Device& device, const MemoryRoom& room,
                            PipelinePlan& plan, int stage) {
  StageEstimate estimate;
  MemoryEstimate& memory = estimate.memory;
  const NetPartition& train = plan.nets.front();
  estimate.first = train.layers[static_cast<size_t>(stage)].front();
  estimate.last = train.layers[static_cast<size_t>(stage)].back();
  estimate.exchanged = ExchangedBytes(plan, stage);
  const SolverSpec own = SpecOfStage(whole, &plan, stage);
  const std::unique_ptr<Optimizer> rule = MakeOptimizer(own);
  ParamStore params(device);
  const auto add = [&](size_t number, const NetUse& use) {
    NetOptions options;
    options.log = false;
    options.state = use.state;
    options.training = number == 0;
    options.boundary = plan.nets[number].BoundaryOf(stage);
    if (number == 0) {
      AdaptNetOptions(*rule, &options);
      options.activation_slots = std::min(plan.UnderWay(stage), own.proto.iter_size());
    }
    const std::unique_ptr<const Graph> graph =
        Compile(*use.net, options, device, params, SizeLimit::kNone);
    memory.AddNet(*graph);
    if (number > 0) return;
    estimate.slots = options.activation_slots;
    memory.SetRun(own, *rule, *graph, own.proto.virtual_ranks());
    for (int i = 0; i < graph->nodes.size(); ++i) estimate.work += PipelineCost(*graph, i);
  };
  add(0, own.train);
  for (size_t i = 0; i < own.tests.size(); ++i) add(i + 1, own.tests[i]);
  memory.weights = params.RequiredBytes();
  memory.snapshot_copy = 0;  // the first stage copies the state of all stages
  estimate.items = memory.Items(room);
  estimate.items.push_back({"exchanged", "values for other stages", estimate.exchanged, true});
  if (stage == 0) {
    size_t all = 0;
    for (const size_t bytes : train.weight_bytes) all += bytes;
    estimate.items.push_back(
        {"gathered", "snapshot copy of all stages", SnapshotCopyBytes(own.proto, *rule, all, all)});
  }
  estimate.bytes = TotalBytes(estimate.items);
  return estimate;
}

// Returns 0 if the whole is 0.
double Ratio(size_t part, size_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Returns the stage's part of the pipeline's work in percent.
int WorkPercent(const PipelineEstimate& pipeline, const StageEstimate& stage) {
  const double work = pipeline.Work();
  return work > 0 ? static_cast<int>(std::lround(100 * stage.work / work)) : 0;
}

// Returns the memory and work of each of `stages` stages, and the share of time in which a stage
// waits. `room` says whether host or GPU memory is counted.
PipelineEstimate EstimatePipeline(const SolverSpec& spec, const Device& device,
                                  const MemoryRoom& room, int stages) {
  PipelineEstimate pipeline;
  PipelinePlan plan = PlanPipeline(spec, device, stages);
  for (int stage = 0; stage < stages; ++stage) {
    pipeline.stages.push_back(EstimateStage(spec, device, room, plan, stage));
  }
  pipeline.micro_batches = plan.micro_batches * spec.proto.iter_size();
  pipeline.records = plan.records;
  pipeline.bubble = plan.Bubble(pipeline.micro_batches);
  return pipeline;
}

// Returns the table of one pipeline, and how its largest stage compares with `one_rank_bytes`.
std::string PipelineText(const PipelineEstimate& pipeline, size_t one_rank_bytes) {
  Table table({"stage", "first", "work, %", "weights", "values", "slots", "memory", "share"});
  table.InBytes({"weights", "values", "memory"}).LeaveOut({"slots"});
  const auto stages = static_cast<int>(pipeline.stages.size());
  for (int i = 0; i < stages; ++i) {
    const StageEstimate& stage = pipeline.stages[static_cast<size_t>(i)];
    table.Add({Join(i), stage.first, Join(WorkPercent(pipeline, stage)), Join(stage.memory.weights),
               Join(stage.memory.activations), Join(stage.slots), Join(stage.bytes),
               Fixed(Ratio(stage.bytes, one_rank_bytes), 2)});
  }
  const int64_t records = pipeline.records;
  const int passes = pipeline.micro_batches;
  const size_t largest = pipeline.LargestBytes();
  return Join(stages, " stages, ", passes, " micro-batches",
              records > 0 ? Join(" of ", records, " records") : std::string(), "\n\n",
              table.ToString(), "\nlargest: ", Bytes(largest), ", ",
              Fixed(Ratio(largest, one_rank_bytes), 2), " of the ", Bytes(one_rank_bytes),
              " of one rank with whole batches\nbubble: (p - 1) / (m + p - 1) = ", stages - 1,
              " / ", passes + stages - 1, " = ", Fixed(100 * pipeline.bubble, 1),
              " % of the time\n");
}

Json PipelineJson(const PipelineEstimate& pipeline, size_t one_rank_bytes) {
  Json list = Json::Array();
  const double work = pipeline.Work();
  for (const StageEstimate& stage : pipeline.stages) {
    list.Push(Json::Object()
                  .Set("first", stage.first)
                  .Set("last", stage.last)
                  .Set("work", work > 0 ? stage.work / work : 0)
                  .Set("weight_bytes", stage.memory.weights)
                  .Set("value_bytes", stage.memory.activations)
                  .Set("under_way", stage.slots)
                  .Set("exchanged_bytes", stage.exchanged)
                  .Set("bytes", stage.bytes)
                  .Set("of_one_rank", Ratio(stage.bytes, one_rank_bytes)));
  }
  return Json::Object()
      .Set("stages", list)
      .Set("micro_batches", pipeline.micro_batches)
      .Set("records", pipeline.records)
      .Set("largest_bytes", pipeline.LargestBytes())
      .Set("one_rank_bytes", one_rank_bytes)
      .Set("bubble", pipeline.bubble);
}

}  // namespace

StageEstimate EstimateStageMemory(const SolverSpec& spec, const Device& device, int stages,
                                  int stage) {
  PipelinePlan plan = PlanPipeline(spec, device, stages);
  return EstimateStage(spec, device, UnlimitedRoom(device), plan, stage);
}

double PipelineEstimate::Work() const {
  double work = 0;
  for (const StageEstimate& stage : stages) work += stage.work;
  return work;
}

size_t PipelineEstimate::LargestBytes() const {
  size_t largest = 0;
  for (const StageEstimate& stage : stages) largest = std::max(largest, stage.bytes);
  return largest;
}

PipelineComparison ComparePipelines(const SolverSpec& spec, const Device& device,
                                    const MemoryRoom& room, const std::vector<int>& stages) {
  PipelineComparison comparison;
  comparison.one_rank_bytes = TotalBytes(EstimateMemory(spec, device).Items(room));
  for (const int count : stages) {
    comparison.pipelines.push_back(EstimatePipeline(spec, device, room, count));
  }
  return comparison;
}

std::string ToText(const PipelineComparison& comparison) {
  std::string text;
  for (const PipelineEstimate& pipeline : comparison.pipelines) {
    text += Join(text.empty() ? "" : "\n", PipelineText(pipeline, comparison.one_rank_bytes));
  }
  return text;
}

Json ToJson(const PipelineComparison& comparison) {
  Json list = Json::Array();
  for (const PipelineEstimate& pipeline : comparison.pipelines) {
    list.Push(PipelineJson(pipeline, comparison.one_rank_bytes));
  }
  return list;
}

}  // namespace trainer
