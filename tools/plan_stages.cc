#include "plan_stages.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "memory_limit.h"
#include "plan_parts.h"
#include "plan_ranks.h"
#include "rank_flags.h"
#include "shared_flags.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/steps/step_rule.h"
#include "trainer/strategies/pipeline_plan.h"

namespace trainer {
namespace {

struct StageMemory {
  std::string first, last;  // layers
  double work = 0;          // of a pass
  int slots = 1;
  PlannedTotals totals;
  std::vector<PlannedPart> parts;
  size_t train_values = 0;  // of all slots
  size_t exchanged = 0;     // memory of what goes from stage to stage, at the stage that gives it
  size_t sum = 0;
};

size_t ExchangedBytes(const PipelinePlan& plan, int stage) {
  size_t bytes = 0;
  for (size_t net = 0; net < plan.nets.size(); ++net) {
    for (const StagedValue& value : plan.nets[net].values) {
      const size_t slots = static_cast<size_t>(plan.UnderWay(value.from)) * value.bytes();
      if (value.from == stage) bytes += slots;
      if (value.to == stage && net == 0 && value.has_gradient) bytes += slots;
    }
  }
  return bytes;
}

// What the rank of a stage takes.
StageMemory MemoryOf(const SolverSpec& whole, const Device& device, const PlanTarget& target,
                     PipelinePlan& plan, int stage) {
  StageMemory memory;
  const StagedNet& train = plan.nets.front();
  memory.first = train.layers[static_cast<size_t>(stage)].front();
  memory.last = train.layers[static_cast<size_t>(stage)].back();
  memory.exchanged = ExchangedBytes(plan, stage);
  const SolverSpec own = SpecOfStage(whole, &plan, stage);
  const std::unique_ptr<StepRule> rule = MakeStepRule(own);
  ParamStore params(device);
  const auto add = [&](size_t number, const NetUse& use) {
    NetOptions options;
    options.log = false;
    options.plan_only = options.any_size = true;
    options.state = use.state;
    options.training = number == 0;
    options.edges = plan.nets[number].EdgesOf(stage);
    if (number == 0) {
      AdaptTo(*rule, &options);
      options.slots = std::min(plan.UnderWay(stage), own.proto.iter_size());
    }
    const Net net(*use.net, options, device, params);
    memory.totals.AddNet(net);
    if (number > 0) return;
    memory.train_values = memory.totals.values;
    memory.slots = options.slots;
    memory.totals.SetRun(own, *rule, net, params.PlannedBytes());
    for (int i = 0; i < net.NumLayers(); ++i) memory.work += WorkOf(net, i);
  };
  add(0, own.train);
  for (size_t i = 0; i < own.tests.size(); ++i) add(i + 1, own.tests[i]);
  memory.totals.weights = params.PlannedBytes();
  memory.totals.snapshot = 0;  // the first stage gathers those of all
  memory.parts = PartsOf(memory.totals, target);
  memory.parts.push_back({"exchanged", "values for other stages", memory.exchanged, true});
  if (stage == 0) {
    size_t all = 0;
    for (const size_t bytes : train.weight_bytes) all += bytes;
    memory.parts.push_back(
        {"gathered", "snapshot copy of all stages", SnapshotCopyBytes(own.proto, *rule, all, all)});
  }
  memory.sum = Sum(memory.parts);
  return memory;
}

double Ratio(size_t part, size_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// All stages of a pipeline, beside one rank that computes whole batches.
struct StagesReport {
  StagesReport(const SolverSpec& spec, const PlanTarget& target, int count, size_t whole_bytes)
      : stages(count), whole(whole_bytes) {
    PipelinePlan plan = PlanPipeline(spec, *target.device, stages);
    for (int stage = 0; stage < stages; ++stage) {
      all.push_back(MemoryOf(spec, *target.device, target, plan, stage));
      work += all.back().work;
      largest = std::max(largest, all.back().sum);
    }
    passes = plan.micro_batches * spec.proto.iter_size();
    records = plan.records;
    bubble = plan.Bubble(passes);
  }

  int Share(const StageMemory& memory) const {
    return work > 0 ? static_cast<int>(std::lround(100 * memory.work / work)) : 0;
  }
  std::string ToText() const;
  Json ToJson() const;

  int stages, passes = 0;
  size_t whole, largest = 0;
  std::vector<StageMemory> all;
  double work = 0, bubble = 0;
  int64_t records = 0;
};

std::string StagesReport::ToText() const {
  Table table({"stage", "first", "work, %", "weights", "values", "slots", "memory", "share"});
  table.InBytes({"weights", "values", "memory"}).LeaveOut({"slots"});
  for (size_t stage = 0; stage < all.size(); ++stage) {
    const StageMemory& memory = all[stage];
    table.Add({Join(stage), memory.first, Join(Share(memory)), Join(memory.totals.weights),
               Join(memory.totals.values), Join(memory.slots), Join(memory.sum),
               Fixed(Ratio(memory.sum, whole), 2)});
  }
  return Join(stages, " stages, ", passes, " micro-batches",
              records > 0 ? Join(" of ", records, " records") : std::string(), "\n\n",
              table.ToString(), "\nlargest: ", Bytes(largest), ", ",
              Fixed(Ratio(largest, whole), 2), " of the ", Bytes(whole),
              " of one rank with whole batches\nbubble: (p - 1) / (m + p - 1) = ", stages - 1,
              " / ", passes + stages - 1, " = ", Fixed(100 * bubble, 1), " % of the time\n");
}

Json StagesReport::ToJson() const {
  Json list = Json::Array();
  for (const StageMemory& memory : all) {
    list.Push(Json::Object()
                  .Set("first", memory.first)
                  .Set("last", memory.last)
                  .Set("work", work > 0 ? memory.work / work : 0)
                  .Set("weight_bytes", memory.totals.weights)
                  .Set("value_bytes", memory.totals.values)
                  .Set("under_way", memory.slots)
                  .Set("exchanged_bytes", memory.exchanged)
                  .Set("bytes", memory.sum)
                  .Set("of_one_rank", Ratio(memory.sum, whole)));
  }
  return Json::Object()
      .Set("stages", list)
      .Set("micro_batches", passes)
      .Set("records", records)
      .Set("largest_bytes", largest)
      .Set("one_rank_bytes", whole)
      .Set("bubble", bubble);
}

}  // namespace

bool IsPipeline(const Flags& flags) {
  const std::string& name = flags.Text("strategy");
  if (!name.empty()) return name == "pipeline";
  return flags.Has("ranks") && flags.Has("solver") &&
         SolverOf(flags).proto.strategy() == "pipeline";
}

StageParts PartsOfStage(const SolverSpec& spec, const Device& device, int stages, int stage) {
  PipelinePlan plan = PlanPipeline(spec, device, stages);
  StageMemory memory = MemoryOf(spec, device, CountingTarget(device), plan, stage);
  return {std::move(memory.parts), memory.train_values, memory.slots};
}

int PlanStages(const Flags& flags) {
  if (!flags.Has("solver") || !flags.Has("ranks")) {
    throw Error(
        ErrorCode::kUsage,
        "--strategy=pipeline needs the solver and the number of stages: --solver=FILE --ranks=4");
  }
  SolverSpec spec = SolverOf(flags);
  spec.proto.set_strategy("pipeline");
  TakeStages(flags, &spec);
  const PlanTarget target = TargetOf(flags);
  const size_t whole = Sum(PartsOf(PlanRun(spec, *target.device).totals, target));
  Json all = Json::Array();
  std::string text;
  for (const int stages : RanksOf(flags)) {
    const StagesReport report(spec, target, stages, whole);
    all.Push(report.ToJson());
    text += (text.empty() ? "" : "\n") + report.ToText();
  }
  std::cout << (flags.Switch("json") ? all.ToString() : text);
  return 0;
}

}  // namespace trainer
