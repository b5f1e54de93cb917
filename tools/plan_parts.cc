#include "plan_parts.h"

#include <algorithm>

#include "trainer/backend/plan_device.h"
#include "trainer/base/text.h"
#include "trainer/solver/solver.h"
#include "trainer/steps/part_sums.h"
#include "trainer/steps/step_rule.h"

namespace trainer {
namespace {

// Code, its libraries' tables and what is compiled on the way: LeNet's run took so much beside what
// is planned.
constexpr size_t kProgramBytes = size_t{16} << 20;

// How many outputs of the net are recomputed in backward.
int CountComputedAgain(const Net& net) {
  return static_cast<int>(std::ranges::count_if(net.memory_plan().blocks, [](const auto& block) {
    return block.kind == BlockKind::kValue && block.name.ends_with(" again");
  }));
}

}  // namespace

// A prefetched layer keeps `prefetch` batches ready and fills one more.
size_t AheadBytes(const Net& net) {
  size_t bytes = 0;
  for (int i = 0; i < net.NumLayers(); ++i) {
    if (net.GetLayer(i).Waits() == nullptr) continue;
    const caffe::LayerParameter& layer = net.LayerAt(i).proto();
    for (const std::string& top : layer.top()) {
      bytes += net.Value(top).Bytes() * (size_t{layer.data_param().prefetch()} + 1);
    }
  }
  return bytes;
}

int SavedPerWeight(const caffe::SolverParameter& solver, int states) {
  if (!SavesSnapshots(solver)) return 0;
  return 1 + states + (solver.ema_decay() > 0 ? 1 : 0) + (solver.snapshot_diff() ? 1 : 0);
}

void PlannedTotals::AddNet(const Net& net) {
  const auto slots = static_cast<size_t>(net.slots());
  values += net.memory_plan().arena_bytes * slots;
  staged += StagedBytes(net) * slots;
  ahead += AheadBytes(net);
}

// What one rank takes that computes all virtual ranks' parts of a batch.
void PlannedTotals::SetParts(const Net& train, const caffe::SolverParameter& solver) {
  parts = solver.virtual_ranks();
  part_sums = ExtraPartBytes(train, parts, solver.iter_size());
}

std::vector<PlannedPart> PartsOf(const PlannedTotals& totals, const PlanTarget& target) {
  const auto times = [&](int numbers) { return totals.weights * static_cast<size_t>(numbers); };
  std::vector<PlannedPart> parts = {
      {"parameters", "parameters", totals.weights},
      {"gradients", "gradients", totals.gradients},
      {"rule_state", "rule state", times(totals.states_per_weight)},
      {"values", "values of all nets", totals.values - totals.staged, true},
  };
  if (totals.parts > 1) {
    parts.push_back({"part_sums",
                     Join("sums of the ", totals.parts, " virtual ranks' parts, on one rank"),
                     totals.part_sums});
  }
  if (target.gpu) {
    parts.push_back({"staging", "batches on their way", totals.staged, true});
    if (target.estimated) {
      parts.push_back({"context", "context and libraries (estimate)", kGpuContextBytes});
    }
    return parts;
  }
  parts.push_back({"ahead", "batches read ahead", totals.ahead, true});
  if (totals.saved_per_weight > 0) {  // while the disk takes it
    parts.push_back({"snapshot", "copy for snapshots", times(totals.saved_per_weight)});
  }
  parts.push_back({"program", "the program (estimate)", kProgramBytes});
  return parts;
}

PlannedRun PlanRun(const SolverSpec& spec, const Device& device, size_t most_value_bytes) {
  PlannedRun run;
  ParamStore params(device);
  const auto rule = MakeStepRule(spec);
  NetOptions options;
  options.log = false;
  options.plan_only = true;
  options.training = true;
  options.keeps_batch = rule->EvaluatesAgain();
  options.most_value_bytes = most_value_bytes;
  options.state = spec.train.state;
  rule->Adapt(options);
  const Net train(*spec.train.net, options, device, params);
  run.totals.AddNet(train);
  run.train_values = train.memory_plan().arena_bytes;
  run.computed_again = CountComputedAgain(train);
  for (int i = 0; i < train.NumLayers(); ++i) run.macs += train.GetLayer(i).Macs();
  options.training = options.keeps_batch = false;
  options.most_value_bytes = 0;
  for (const auto& test : spec.tests) {
    options.state = test.state;
    run.totals.AddNet(Net(*test.net, options, device, params));
  }
  run.totals.weights = params.PlannedBytes();
  run.totals.gradients = GradientBytes(train);
  run.totals.SetParts(train, spec.proto);
  run.totals.states_per_weight = rule->StatesPerWeight();
  run.totals.saved_per_weight = SavedPerWeight(spec.proto, run.totals.states_per_weight);
  return run;
}

}  // namespace trainer
