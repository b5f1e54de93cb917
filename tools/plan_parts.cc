#include "plan_parts.h"

#include "trainer/backend/plan_device.h"
#include "trainer/base/text.h"
#include "trainer/solver/solver.h"
#include "trainer/steps/part_sums.h"
#include "trainer/steps/step_rule.h"

namespace trainer {

int SavedPerWeight(const caffe::SolverParameter& solver, int states) {
  if (!SavesSnapshots(solver)) return 0;
  return 1 + states + (solver.ema_decay() > 0 ? 1 : 0) + (solver.snapshot_diff() ? 1 : 0);
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
  } else if (totals.saved_per_weight > 0) {
    // In memory of the host, while the disk takes it.
    parts.push_back({"snapshot", "copy for snapshots", times(totals.saved_per_weight)});
  }
  return parts;
}

PlannedRun PlanRun(const SolverSpec& spec, const PlanTarget& target) {
  PlannedRun run;
  ParamStore params(*target.device);
  NetOptions options;
  options.log = false;
  options.plan_only = true;
  options.training = true;
  options.state = spec.train.state;
  const auto add = [&](const Net& net) {
    run.totals.values += net.memory_plan().arena_bytes;
    run.totals.staged += StagedBytes(net);
  };
  const Net train(*spec.train.net, options, *target.device, params);
  add(train);
  for (int i = 0; i < train.NumLayers(); ++i) run.macs += train.GetLayer(i).Macs();
  options.training = false;
  for (const auto& test : spec.tests) {
    options.state = test.state;
    add(Net(*test.net, options, *target.device, params));
  }
  run.totals.weights = params.PlannedBytes();
  run.totals.gradients = GradientBytes(train);
  run.totals.SetParts(train, spec.proto);
  run.totals.states_per_weight = MakeStepRule(spec)->StatesPerWeight();
  run.totals.saved_per_weight = SavedPerWeight(spec.proto, run.totals.states_per_weight);
  return run;
}

}  // namespace trainer
