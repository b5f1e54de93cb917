#include "plan_parts.h"

#include <algorithm>

#include "trainer/backend/plan_device.h"
#include "trainer/base/text/text.h"
#include "trainer/net/test_nets.h"
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

size_t StateBytes(const Net& net) {
  size_t bytes = 0;
  for (const PlannedBlock& block : net.memory_plan().blocks) {
    if (block.kind == BlockKind::kState) bytes += block.bytes;
  }
  return bytes;
}

size_t RuleBytes(const StepRule& rule, size_t weights, size_t gradients) {
  return weights * static_cast<size_t>(rule.StatesPerWeight()) +
         gradients * static_cast<size_t>(rule.ExtraArrays());
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

void PlannedTotals::AddNet(const Net& net) {
  const auto slots = static_cast<size_t>(net.slots());
  values += net.memory_plan().arena_bytes * slots;
  staged += StagedBytes(net) * slots;
  ahead += AheadBytes(net);
}

size_t SnapshotCopyBytes(const caffe::SolverParameter& solver, const StepRule& rule, size_t weights,
                         size_t gradients) {
  if (!SavesSnapshots(solver)) return 0;
  const size_t copies = (solver.ema_decay() > 0 ? 1U : 0U) + (solver.snapshot_diff() ? 1U : 0U);
  return weights + RuleBytes(rule, weights, gradients) + gradients * copies;
}

void PlannedTotals::SetRun(const SolverSpec& spec, const StepRule& step, const Net& train,
                           size_t weight_bytes) {
  weights = weight_bytes;
  gradients = GradientBytes(train);
  states_per_weight = step.StatesPerWeight();
  rule = RuleBytes(step, weights, gradients);
  if (step.EvaluatesAgain()) rule += StateBytes(train);  // to begin each evaluation alike
  if (spec.proto.ema_decay() > 0) averages = gradients;
  snapshot = SnapshotCopyBytes(spec.proto, step, weights, gradients);
  parts = spec.proto.virtual_ranks();  // all of them on one rank
  part_sums = ExtraPartBytes(train, parts, spec.proto.iter_size());
}

void AdaptTo(const StepRule& rule, NetOptions* options) {
  options->keeps_batch = rule.EvaluatesAgain();
  rule.Adapt(*options);
}

std::vector<PlannedPart> PartsOf(const PlannedTotals& totals, const PlanTarget& target) {
  std::vector<PlannedPart> parts = {
      {"parameters", "parameters", totals.weights},
      {"gradients", "gradients", totals.gradients},
      {"rule_state", "rule state", totals.rule},
      {"values", "values of all nets", totals.values - totals.staged, true},
  };
  if (totals.averages > 0) {
    parts.push_back({"averages", "averaged weights (ema_decay)", totals.averages});
  }
  if (totals.parts > 1) {
    parts.push_back({"part_sums",
                     Join("sums of the ", totals.parts, " virtual ranks' parts, on one rank"),
                     totals.part_sums});
  }
  if (target.gpu) {
    parts.push_back({"staging", "batches in transfer", totals.staged, true});
    if (target.estimated) {
      parts.push_back({"context", "context and libraries (estimate)", kGpuContextBytes});
    }
    return parts;
  }
  parts.push_back({"ahead", "batches read ahead", totals.ahead, true});
  if (totals.snapshot > 0) parts.push_back({"snapshot", "copy for snapshots", totals.snapshot});
  parts.push_back({"program", "the program (estimate)", kProgramBytes});
  return parts;
}

PlannedRun PlanRun(const SolverSpec& spec, const Device& device, const PlanRunOptions& how) {
  PlannedRun run;
  ParamStore params(device);
  const auto rule = MakeStepRule(spec);
  NetOptions options;
  options.log = false;
  options.plan_only = true;
  options.memory = how.memory;
  NetOptions training = options;
  training.training = true;
  training.most_value_bytes = how.most_value_bytes;
  training.state = spec.train.state;
  AdaptTo(*rule, &training);
  const auto add = [&](const std::string& title, const Net& net) {
    run.totals.AddNet(net);
    if (how.see) how.see(title, net);
  };
  const Net train(*spec.train.net, training, device, params);
  add("training net", train);
  run.train_values = train.memory_plan().arena_bytes;
  run.computed_again = CountComputedAgain(train);
  for (int i = 0; i < train.NumLayers(); ++i) run.macs += train.GetLayer(i).Macs();
  for (size_t i = 0; i < spec.tests.size(); ++i) {
    options.state = spec.tests[i].state;
    TestNets nets(*spec.tests[i].net, options, device, params,
                  spec.proto.test_iter(static_cast<int>(i)));
    add(Join("test net (#", i, ")"), nets.net());
    if (nets.rest() != nullptr) add(Join("test net (#", i, "), last batch"), *nets.rest());
  }
  run.totals.SetRun(spec, *rule, train, params.PlannedBytes());
  return run;
}

}  // namespace trainer
