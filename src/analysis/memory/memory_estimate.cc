#include "trainer/analysis/memory/memory_estimate.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "trainer/backend/device/meta_device.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/net/compile.h"
#include "trainer/net/test_nets.h"
#include "trainer/optim/objective.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

// Code, tables of libraries and kernels compiled at run time. Measured as the memory of a run of
// LeNet that no plan counts.
constexpr size_t kProgramBytes = size_t{16} << 20;

// Returns the bytes of the states that layers keep from one pass to the next.
size_t StateBytes(const Graph& graph) {
  size_t bytes = 0;
  for (const Buffer& block : graph.memory.buffers) {
    if (block.kind == BufferKind::kState) bytes += block.bytes;
  }
  return bytes;
}

// Returns what an update rule keeps: its states per weight, and arrays as large as the gradients.
size_t RuleBytes(const Optimizer& rule, size_t weights, size_t gradients) {
  return weights * static_cast<size_t>(rule.StatesPerWeight()) +
         gradients * static_cast<size_t>(rule.ExtraArrays());
}

// Returns the bytes of parameters, which the store pads for alignment.
template <class Params>
size_t WeightBytes(const Params& params) {
  int64_t count = 0;
  for (const Param* param : params) count += ParamStore::PaddedCount(param->count());
  return static_cast<size_t>(count) * sizeof(float);
}

// Returns the bytes of the batches that data layers hold: `prefetch` ready and one being filled.
size_t PrefetchBytes(const Graph& graph) {
  size_t bytes = 0;
  for (const Node& node : graph.nodes) {
    if (node.layer->data_layer() == nullptr) continue;
    const caffe::LayerParameter& layer = node.spec.proto();
    for (const std::string& top : layer.top()) {
      bytes += graph.Find(top).Bytes() * (size_t{layer.data_param().prefetch()} + 1);
    }
  }
  return bytes;
}

// Returns the items sorted by their bytes.
std::vector<MemoryItem> LargestFirst(std::vector<MemoryItem> items) {
  std::ranges::stable_sort(items, std::ranges::greater(), &MemoryItem::bytes);
  return items;
}

}  // namespace

size_t TotalBytes(const std::vector<MemoryItem>& items) {
  size_t bytes = 0;
  for (const MemoryItem& item : items) bytes += item.bytes;
  return bytes;
}

std::string ToText(const std::vector<MemoryItem>& items) {
  std::string text;
  for (const MemoryItem& item : LargestFirst(items)) {
    constexpr size_t kWidth = 10;
    const std::string bytes = Bytes(item.bytes);
    if (item.bytes == 0) continue;
    text += Join(std::string(kWidth - std::min(kWidth, bytes.size()), ' '), bytes, "  ", item.name,
                 "\n");
  }
  return text;
}

Json ToJson(const std::vector<MemoryItem>& items) {
  Json json = Json::Object();
  for (const MemoryItem& item : items) json.Set(item.key, item.bytes);
  return json.Set("together", TotalBytes(items));
}

std::string DescribeLargest(std::vector<MemoryItem> items) {
  constexpr size_t kShown = 3;
  const std::vector<MemoryItem> sorted = LargestFirst(std::move(items));
  std::vector<std::string> texts;
  for (const MemoryItem& item : std::span(sorted).first(std::min(sorted.size(), kShown))) {
    texts.push_back(Join(item.name, " ", Bytes(item.bytes)));
  }
  return JoinList(texts);
}

void MemoryEstimate::AddNet(const Graph& graph) {
  const auto slots = static_cast<size_t>(graph.options.activation_slots);
  activations += graph.memory.arena_bytes * slots;
  staging += StagingBytes(graph) * slots;
  prefetched += PrefetchBytes(graph);
}

void MemoryEstimate::SetRun(const SolverSpec& spec, const Optimizer& rule, const Graph& train,
                            int parts) {
  weights = WeightBytes(train.params);
  gradients = GradientBytes(train);
  states_per_weight = rule.StatesPerWeight();
  rule_state = RuleBytes(rule, weights, gradients);
  // Each evaluation of a batch begins with a copy of the states that the first one began with.
  if (rule.Reevaluates()) rule_state += StateBytes(train);
  if (spec.proto.ema_decay() > 0) ema_weights = gradients;
  snapshot_copy = SnapshotCopyBytes(spec.proto, rule, weights, gradients);
  virtual_ranks = parts;
  part_sums = ExtraVirtualRankBytes(train, virtual_ranks, spec.proto.iter_size());
  train_activations =
      train.memory.arena_bytes * static_cast<size_t>(train.options.activation_slots);
  recomputed = CountRecomputed(train.memory);
  batch = BatchSizeOf(train);
  macs = 0;
  for (const Node& node : train.nodes) macs += node.layer->Macs();
}

std::vector<MemoryItem> MemoryEstimate::Items(const MemoryRoom& room) const {
  std::vector<MemoryItem> items = {
      {"parameters", "parameters", weights},
      {"gradients", "gradients", gradients},
      {"rule_state", "rule state", rule_state},
      {"values", "values of all nets", activations - staging, true},
  };
  if (ema_weights > 0) items.push_back({"averages", "averaged weights (ema_decay)", ema_weights});
  if (virtual_ranks > 1) {
    items.push_back({"part_sums",
                     Join("sums of the ", virtual_ranks, " virtual ranks' parts, on one rank"),
                     part_sums});
  }
  if (room.gpu) {
    items.push_back({"staging", "batches in transfer", staging, true});
    if (room.estimated) {
      items.push_back({"context", "context and libraries (estimate)", kGpuContextBytes});
    }
    return items;
  }
  items.push_back({"ahead", "batches read ahead", prefetched, true});
  if (snapshot_copy > 0) items.push_back({"snapshot", "copy for snapshots", snapshot_copy});
  items.push_back({"program", "the program (estimate)", kProgramBytes});
  return items;
}

MemoryEstimator::MemoryEstimator(const Device& device, BufferReuse memory, OnNet on_net)
    : device_(device), memory_(memory), on_net_(std::move(on_net)) {}

MemoryEstimate MemoryEstimator::Estimate(const SolverSpec& spec, size_t activation_budget_bytes) {
  MemoryEstimate estimate;
  ParamStore params(device_);
  const std::unique_ptr<Optimizer> rule = MakeOptimizer(spec);
  NetOptions options;
  options.log = false;
  options.memory = memory_;
  const auto add = [&](const std::string& title, const Graph& graph, MemoryEstimate* to) {
    to->AddNet(graph);
    if (on_net_) on_net_(title, graph);
  };
  NetOptions training = options;
  training.training = true;
  training.keeps_frozen = spec.proto.unfreeze_at() <= 0;  // the net needs most when all learn
  training.activation_budget_bytes = activation_budget_bytes;
  training.state = spec.train.state;
  AdaptNetOptions(*rule, &training);
  const std::unique_ptr<const Graph> train = Compile(*spec.train.net, training, device_, params);
  add("training net", *train, &estimate);
  if (!tests_) {
    TestEstimate tests;
    const size_t before = params.RequiredBytes();
    for (size_t i = 0; i < spec.tests.size(); ++i) {
      options.state = spec.tests[i].state;
      const TestGraphs graphs = CompileTest(*spec.tests[i].net, options, device_, params,
                                            spec.proto.test_iter(static_cast<int>(i)));
      add(Join("test net (#", i, ")"), *graphs.whole, &tests.nets);
      if (graphs.rest != nullptr) {
        add(Join("test net (#", i, "), last batch"), *graphs.rest, &tests.nets);
      }
    }
    tests.weights = params.RequiredBytes() - before;
    tests_ = tests;
  }
  estimate.SetRun(spec, *rule, *train, spec.proto.virtual_ranks());
  estimate.weights += tests_->weights;
  estimate.activations += tests_->nets.activations;
  estimate.staging += tests_->nets.staging;
  estimate.prefetched += tests_->nets.prefetched;
  return estimate;
}

MemoryEstimate EstimateMemory(const SolverSpec& spec, const Device& device) {
  return MemoryEstimator(device).Estimate(spec);
}

MemoryEstimate EstimateMemory(const SolverSpec& spec, Solver& solver) {
  const Net& now = solver.train_net();
  if (now.graph().options.keeps_frozen && spec.proto.unfreeze_at() > 0) {
    // Estimates the net in which all layers learn.
    return MemoryEstimator(now.device())
        .Estimate(spec, now.graph().options.activation_budget_bytes);
  }
  MemoryEstimate estimate;
  std::set<Param*> params;
  const auto add = [&](const Net& net) {
    estimate.AddNet(net.graph());
    params.insert(net.params().begin(), net.params().end());
  };
  add(solver.train_net());
  for (const Net* net : solver.TestNets()) add(*net);
  const Graph& train = solver.train_net().graph();
  estimate.SetRun(spec, *MakeOptimizer(spec), train, train.options.virtual_ranks);
  estimate.weights = WeightBytes(params);
  return estimate;
}

MemoryEstimate EstimateMemory(const Graph& graph, const ParamStore& params) {
  MemoryEstimate estimate;
  estimate.AddNet(graph);
  estimate.weights = params.RequiredBytes();
  if (graph.options.training) estimate.gradients = GradientBytes(graph);
  estimate.train_activations = graph.memory.arena_bytes;
  estimate.recomputed = CountRecomputed(graph.memory);
  estimate.batch = BatchSizeOf(graph);
  return estimate;
}

size_t SnapshotCopyBytes(const caffe::SolverParameter& solver, const Optimizer& rule,
                         size_t weights, size_t gradients) {
  if (!SavesSnapshots(solver)) return 0;
  const size_t copies = (solver.ema_decay() > 0 ? 1U : 0U) + (solver.snapshot_diff() ? 1U : 0U);
  return weights + RuleBytes(rule, weights, gradients) + gradients * copies;
}

void AdaptNetOptions(const Optimizer& rule, NetOptions* options) {
  options->allow_reevaluation = rule.Reevaluates();
  rule.ConfigureCompile(*options);
}

int64_t BatchSizeOf(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    const caffe::LayerParameter& layer = node.spec.proto();
    if (layer.bottom_size() > 0 || layer.top_size() == 0) continue;
    const Shape shape = graph.Find(layer.top(0)).shape;
    if (shape.Rank() > 0) return shape[0];
  }
  return 0;
}

size_t StagingBytes(const Graph& graph) {
  size_t bytes = 0;
  for (const Buffer& block : graph.memory.buffers) {
    if (block.kind == BufferKind::kUpload) bytes += block.bytes;
  }
  return bytes;
}

int CountRecomputed(const MemoryPlan& plan) {
  return static_cast<int>(std::ranges::count_if(plan.buffers, [](const Buffer& block) {
    return block.kind == BufferKind::kActivation && block.name.ends_with(" again");
  }));
}

}  // namespace trainer
