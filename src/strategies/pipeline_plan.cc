#include "trainer/strategies/pipeline_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "trainer/base/text/text.h"
#include "trainer/config/batch_size.h"
#include "trainer/optim/optimizer.h"

namespace trainer {
namespace {

constexpr int kPassesPerStage = 4;  // micro-batches per stage, by default

// Returns the greatest common divisor of all batch sizes of the net; 0 if it gives none.
int64_t CommonBatch(const NetUse& use) {
  int64_t common = 0;
  for (LayerSpec layer : FilterLayers(*use.net, use.state)) {
    ChangeBatchSizes(&layer.mutable_proto(), true, [&](int64_t size) {
      common = std::gcd(common, size);
      return size;
    });
  }
  return common;
}

// Returns the number of micro-batches: as the solver says, or the largest divisor of the batch up
// to 4 per stage. Throws kConfig if the solver's number does not divide the batch. A net without
// batch sizes has 1.
int MicroBatches(const SolverSpec& spec, int stages, int64_t batch) {
  const int asked = spec.proto.strategy_param().micro_batches();
  if (batch == 0) return 1;
  if (asked == 0) {
    int most = static_cast<int>(std::min<int64_t>(batch, int64_t{kPassesPerStage} * stages));
    while (batch % most != 0) --most;
    return most;
  }
  if (batch % asked == 0) return asked;
  spec.Fail("strategy_param",
            Join("strategy_param.micro_batches is ", asked, ", which does not divide the batch of ",
                 batch, " records; choose a divisor of it"));
}

// Returns the net with batch sizes divided by `parts`.
NetSpec WithMicroBatches(const NetSpec& net, int parts) {
  NetSpec smaller;
  smaller.proto = net.proto;
  smaller.file = net.file;
  smaller.tree = net.tree;
  smaller.layers = net.layers;
  for (LayerSpec& layer : smaller.layers) {
    ChangeBatchSizes(&layer.mutable_proto(), true, [&](int64_t size) { return size / parts; });
  }
  return smaller;
}

NetOptions OptionsOf(const NetUse& use, bool training) {
  NetOptions options;
  options.state = use.state;
  options.training = training;
  return options;
}

}  // namespace

double PipelinePlan::Bubble(int passes) const {
  return static_cast<double>(stages - 1) / static_cast<double>(passes + stages - 1);
}

PipelinePlan PlanPipeline(const SolverSpec& spec, const Device& device, int stages) {
  PipelinePlan plan;
  plan.stages = stages;
  const int64_t batch = CommonBatch(spec.train);
  plan.micro_batches = MicroBatches(spec, stages, batch);
  plan.records = batch / plan.micro_batches;
  PartitionOptions rule;
  rule.stages = stages;
  rule.by_cost = spec.proto.strategy_param().stages() == "auto";
  rule.passes = plan.micro_batches;
  rule.numbers_per_weight = 2 + MakeOptimizer(spec)->StatesPerWeight();
  const NetSpec micro = WithMicroBatches(*spec.train.net, plan.micro_batches);
  plan.nets.push_back(PartitionNet(micro, OptionsOf(spec.train, true), device, rule));
  for (const NetUse& test : spec.tests) {
    rule.like = &plan.nets.front();
    NetPartition staged = PartitionNet(*test.net, OptionsOf(test, false), device, rule);
    plan.nets.push_back(std::move(staged));
  }
  return plan;
}

SolverSpec SpecOfStage(const SolverSpec& spec, PipelinePlan* plan, int stage) {
  SolverSpec own;
  own.proto = spec.proto;
  own.proto.set_iter_size(spec.proto.iter_size() * plan->micro_batches);
  own.file = spec.file;
  if (spec.text != nullptr) {  // parsed again for its line numbers; the fields come from `spec`
    caffe::SolverParameter unused;
    own.text = ParseTextString(spec.file, spec.text->content, &unused);
  }
  const auto take = [&](size_t net, const NetUse& use) {
    own.nets.push_back(std::move(plan->nets[net].nets[static_cast<size_t>(stage)]));
    return NetUse{&own.nets.back(), use.state, use.description};
  };
  own.train = take(0, spec.train);
  for (size_t i = 0; i < spec.tests.size(); ++i) own.tests.push_back(take(i + 1, spec.tests[i]));
  return own;
}

}  // namespace trainer
