#include "trainer/net/partition.h"

#include <algorithm>
#include <utility>

#include "trainer/base/text/text.h"
#include "trainer/config/net_layers.h"
#include "trainer/net/compile.h"
#include "trainer/net/cost.h"

namespace trainer {
namespace {

constexpr char kInputName[] = "(from other stages)";
// A rank of a typical machine does this many operations while it moves one byte.
constexpr double kOperationsPerByte = 10;

size_t At(int i) { return static_cast<size_t>(i); }

bool IsInPlace(const Node& node) {
  const caffe::LayerParameter& layer = node.spec.proto();
  return layer.bottom_size() > 0 && layer.top_size() > 0 && layer.bottom(0) == layer.top(0);
}

// The compiled whole net without memory, and the layer of the file that each node belongs to.
class WholeGraph {
 public:
  WholeGraph(const NetSpec& spec, NetOptions options, const Device& device, bool fuse)
      : params_(device) {
    options.log = false;
    options.fuse = fuse;
    graph_ = Compile(spec, options, device, params_, SizeLimit::kNone);
    int layer = 0;
    for (const Node& node : graph().nodes) {
      layer_of_.push_back(layer);  // a cast is inserted before the layer that needs it
      if (!node.is_cast) ++layer;
    }
  }

  const Graph& graph() const { return *graph_; }
  int LayerOf(NodeId node) const { return layer_of_[At(node.number)]; }
  // Returns the value before casts, as the layer of the file wrote it.
  ValueId Made(ValueId value) const {
    const Node& producer = graph().nodes[graph().values[value].producer];
    return producer.is_cast ? Made(producer.in[0]) : value;
  }

 private:
  ParamStore params_;
  std::unique_ptr<const Graph> graph_;
  std::vector<int> layer_of_;
};

class Partitioner {
 public:
  Partitioner(const NetSpec& spec, const NetOptions& options, const Device& device,
              const PartitionOptions& rule)
      : spec_(spec),
        options_(options),
        device_(device),
        rule_(rule),
        layers_(ConnectedLayers(spec, options.state)),
        stage_(layers_.size()),
        whole_(spec, options, device, false) {
    for (const Node& node : whole_.graph().nodes) {
      if (!node.is_cast) is_source_.push_back(node.in.empty() && node.params.empty());
    }
  }

  NetPartition Run() {
    if (rule_.by_cost && rule_.like == nullptr) {
      TakeBalanced();
    } else {
      TakeWritten();
    }
    PlaceSplits();
    CheckLayers();
    TakeParams();
    if (rule_.like == nullptr) RequireAllStages();
    ListValues();
    ListOutputs();
    for (int stage = 0; stage < rule_.stages; ++stage) staged_.nets.push_back(NetOf(stage));
    return std::move(staged_);
  }

 private:
  int NumLayers() const { return static_cast<int>(layers_.size()); }
  const LayerSpec& Layer(int i) const { return layers_[At(i)]; }
  bool IsSplit(int i) const { return Layer(i).type() == "Split"; }
  // Whether the layer's own stage is chosen; data layers and Splits follow other rules.
  bool IsPlaced(int i) const { return !is_source_[At(i)] && !IsSplit(i); }

  void TakeWritten();
  int StageFor(int layer, int now) const;
  void TakeBalanced();
  std::vector<LayerCost> Costs(const std::vector<int>& chain) const;
  void AddCrossing(const WholeGraph& fused, const std::vector<int>& place,
                   std::vector<LayerCost>* costs) const;
  void PlaceSplits();
  void CheckLayers() const;
  void TakeParams();
  void RequireAllStages();
  void ListValues();
  void ListOutputs();
  NetSpec NetOf(int stage) const;

  const NetSpec& spec_;
  const NetOptions& options_;
  const Device& device_;
  const PartitionOptions& rule_;
  std::vector<LayerSpec> layers_;
  std::vector<int> stage_;  // by layer
  WholeGraph whole_;
  std::vector<bool> is_source_;  // by layer
  NetPartition staged_;
};

int Partitioner::StageFor(int i, int now) const {
  const LayerSpec& layer = Layer(i);
  if (rule_.like != nullptr) {
    const auto known = rule_.like->stage_of.find(layer.name());
    if (known != rule_.like->stage_of.end()) return known->second;
  }
  if (!layer.proto().has_stage() || rule_.by_cost) return now;
  const int stage = layer.proto().stage();
  if (stage < 0 || stage >= rule_.stages) {
    layer.Fail("stage",
               Join("stage is ", stage, ", but ", rule_.stages, " ranks have the stages 0 to ",
                    rule_.stages - 1, "; start more ranks, or divide the net into fewer stages"));
  }
  return stage;
}

void Partitioner::TakeWritten() {
  int now = 0;
  for (int i = 0; i < NumLayers(); ++i) {
    if (is_source_[At(i)] && Layer(i).proto().stage() != 0) {
      Layer(i).Fail(
          "stage",
          Join("stage is ", Layer(i).proto().stage(),
               ", but this is a data layer, and only stage 0 reads data; remove `stage` from it"));
    }
    if (!IsPlaced(i)) continue;
    const int stage = StageFor(i, now);
    if (stage < now) {
      Layer(i).Fail("stage",
                    Join("this layer is in stage ", stage, ", but the layer before it is in stage ",
                         now, ": stages cannot decrease; number them in the order of the layers"));
    }
    stage_[At(i)] = now = stage;
  }
}

void Partitioner::TakeBalanced() {
  std::vector<int> chain;
  for (int i = 0; i < NumLayers(); ++i) {
    if (IsPlaced(i)) chain.push_back(i);
  }
  const std::vector<int> first = BalancedStages(Costs(chain), rule_.stages, rule_.passes);
  if (first.empty()) {
    throw Error(
        ErrorCode::kConfig, {spec_.file},
        Join("the net cannot be divided into ", rule_.stages, " stages: it has ", chain.size(),
             " layers, and some of them are computed together with the layer before; start fewer "
             "ranks"));
  }
  for (size_t stage = 0; stage < first.size(); ++stage) {
    for (size_t i = At(first[stage]); i < chain.size(); ++i) {
      stage_[At(chain[i])] = static_cast<int>(stage);
    }
  }
}

// Costs are taken from the fused net, which has the least work, memory traffic and live values.
std::vector<LayerCost> Partitioner::Costs(const std::vector<int>& chain) const {
  const WholeGraph fused(spec_, options_, device_, true);
  std::vector<int> place(layers_.size());  // index in the chain, of the layer or of the next one
  for (size_t i = 0, k = 0; i < layers_.size(); ++i) {
    place[i] = static_cast<int>(std::min(k, chain.size() - 1));
    if (k < chain.size() && chain[k] == static_cast<int>(i)) ++k;
  }
  std::vector<LayerCost> costs(chain.size());
  const Graph& graph = fused.graph();
  std::vector<const Param*> counted;
  for (const NodeId id : graph.nodes.Ids()) {
    LayerCost& cost = costs[At(place[At(fused.LayerOf(id))])];
    cost.time += PipelineCost(fused.graph(), id.number);
    cost.may_cut = cost.may_cut && !graph.nodes[id].fused_into && !IsInPlace(graph.nodes[id]);
    for (const Param* param : graph.nodes[id].params) {
      if (std::ranges::find(counted, param) != counted.end()) continue;
      counted.push_back(param);
      cost.weight_bytes += static_cast<double>(rule_.numbers_per_weight) * sizeof(float) *
                           static_cast<double>(ParamStore::PaddedCount(param->count()));
    }
  }
  for (const Buffer& buffer : graph.memory.buffers) {
    if (buffer.kind != BufferKind::kActivation && buffer.kind != BufferKind::kWorkspace) continue;
    if (buffer.first_use >= graph.nodes.size()) continue;
    costs[At(place[At(fused.LayerOf(NodeId(buffer.first_use)))])].pass_bytes +=
        static_cast<double>(buffer.bytes);
  }
  AddCrossing(fused, place, &costs);
  return costs;
}

void Partitioner::AddCrossing(const WholeGraph& fused, const std::vector<int>& place,
                              std::vector<LayerCost>* costs) const {
  const Graph& graph = fused.graph();
  for (const ValueId id : graph.values.Ids()) {
    const Value& value = graph.values[id];
    const int producer = fused.LayerOf(value.producer);
    if (!IsPlaced(producer)) continue;
    int last = producer;
    for (const NodeId reader : value.consumers) {
      last = std::max(last, fused.LayerOf(reader));
      if (!IsSplit(fused.LayerOf(reader))) continue;
      for (const ValueId part : graph.nodes[reader].out) {
        for (const NodeId of : graph.values[part].consumers)
          last = std::max(last, fused.LayerOf(of));
      }
    }
    for (int cut = place[At(producer)] + 1; cut <= place[At(last)]; ++cut) {
      (*costs)[At(cut)].crossing_bytes += static_cast<double>(value.bytes());
    }
  }
}

// Places each Split in the stage of its first consumer, so that a value is sent to each stage only
// once.
void Partitioner::PlaceSplits() {
  const Graph& graph = whole_.graph();
  for (const NodeId id : graph.nodes.Ids()) {
    const int layer = whole_.LayerOf(id);
    if (graph.nodes[id].is_cast || !IsSplit(layer)) continue;
    int first = rule_.stages;
    for (const ValueId out : graph.nodes[id].out) {
      for (const NodeId reader : graph.values[out].consumers) {
        first = std::min(first, stage_[At(whole_.LayerOf(reader))]);
      }
      if (graph.values[out].consumers.empty()) {  // an output of the net, or a loss
        const NodeId maker = graph.values[whole_.Made(graph.nodes[id].in[0])].producer;
        first = std::min(first, stage_[At(whole_.LayerOf(maker))]);
      }
    }
    stage_[At(layer)] = first;
  }
}

void Partitioner::CheckLayers() const {
  for (const Node& node : whole_.graph().nodes) {
    if (node.signature.state_bytes > 0) {
      node.spec.Fail(
          "this layer keeps a state from batch to batch, but a pipeline processes several batches "
          "at the same time; use another strategy");
    }
    if (node.has_dynamic_shape) {
      node.spec.Fail(
          "the size of this layer's values depends on the batch, but a pipeline needs a fixed size "
          "between stages; use another strategy");
    }
  }
}

void Partitioner::TakeParams() {
  std::map<const Param*, int> owners;
  staged_.params.resize(At(rule_.stages));
  staged_.weight_bytes.resize(At(rule_.stages));
  for (const NodeId id : whole_.graph().nodes.Ids()) {
    const Node& node = whole_.graph().nodes[id];
    const int stage = stage_[At(whole_.LayerOf(id))];
    for (const Param* param : node.params) {
      const auto [owner, is_new] = owners.emplace(param, stage);
      if (is_new) {
        ++staged_.params[At(stage)];
        staged_.weight_bytes[At(stage)] +=
            static_cast<size_t>(ParamStore::PaddedCount(param->count())) * sizeof(float);
      }
      if (owner->second == stage) continue;
      node.spec.Fail(
          "param",
          Join("it is in stage ", stage, ", but it shares the weight '", param->key,
               "' with layer '", param->layer, "' in stage ", owner->second,
               "; a shared weight must be in one stage: give both layers the same stage"),
          0);
    }
  }
}

void Partitioner::RequireAllStages() {
  staged_.layers.resize(At(rule_.stages));
  for (int i = 0; i < NumLayers(); ++i) {
    staged_.stage_of.emplace(Layer(i).name(), stage_[At(i)]);
    if (IsPlaced(i)) staged_.layers[At(stage_[At(i)])].push_back(Layer(i).name());
  }
  for (int stage = 0; stage < rule_.stages; ++stage) {
    if (!staged_.layers[At(stage)].empty()) continue;
    const bool none = !rule_.by_cost && std::ranges::none_of(layers_, [](const LayerSpec& layer) {
      return layer.proto().has_stage();
    });
    throw Error(
        ErrorCode::kConfig, {spec_.file},
        none ? Join("no layer has a `stage`, but each of the ", rule_.stages,
                    " ranks computes one stage: write `stage: 1` into the first layer of "
                    "the second stage, and so on, or let --pipeline_stages=auto choose the stages")
             : Join("stage ", stage, " has no layer, but each of the ", rule_.stages,
                    " ranks computes one stage; number the stages from 0 without a gap, or "
                    "start as many ranks as there are stages"));
  }
}

void Partitioner::ListValues() {
  const Graph& graph = whole_.graph();
  for (const NodeId id : graph.nodes.Ids()) {
    const int to = stage_[At(whole_.LayerOf(id))];
    if (graph.nodes[id].is_cast) continue;
    for (const ValueId in : graph.nodes[id].in) {
      const Value& value = graph.values[whole_.Made(in)];
      const int from = stage_[At(whole_.LayerOf(value.producer))];
      const auto same = [&](const StageTransfer& other) {
        return other.blob == value.name && other.from == from && other.to == to;
      };
      if (from == to || std::ranges::any_of(staged_.values, same)) continue;
      staged_.values.push_back({value.name, value.shape, value.dtype, value.has_grad, from, to});
    }
  }
}

void Partitioner::ListOutputs() {
  for (const Value& value : whole_.graph().values) {
    if (!value.is_output || value.name.starts_with('(')) continue;
    staged_.outputs.push_back({value.name, value.shape.Count(), value.loss_weight,
                               stage_[At(whole_.LayerOf(value.producer))]});
  }
  std::ranges::stable_sort(staged_.outputs, {}, &StageOutput::name);
}

NetSpec Partitioner::NetOf(int stage) const {
  NetSpec net;
  net.proto = spec_.proto;
  net.file = spec_.file;
  net.tree = spec_.tree;
  caffe::LayerParameter input;
  input.set_name(kInputName);
  input.set_type("Input");
  for (const StageTransfer& value : staged_.values) {
    if (value.to != stage) continue;
    input.add_top(value.blob);
    caffe::BlobShape* const shape = input.mutable_input_param()->add_shape();
    for (const int64_t dim : value.shape.dims()) shape->add_dim(dim);
  }
  if (input.top_size() > 0) net.layers.emplace_back(input, SourceRef{spec_.file});
  for (int i = 0; i < NumLayers(); ++i) {
    if (stage_[At(i)] == stage) net.layers.push_back(Layer(i));
  }
  if (!net.layers.empty()) return net;
  input.add_top("(nothing)");  // a stage of a test net that is shorter than the training net
  input.mutable_input_param()->add_shape()->add_dim(1);
  net.layers.emplace_back(input, SourceRef{spec_.file});
  return net;
}

}  // namespace

double PipelineCost(const Graph& graph, int layer) {
  constexpr int kProducts = 3;  // one matrix product forward, two of the same size backward
  const NodeBytes moved = BytesMoved(graph, layer);
  return 2.0 * kProducts * static_cast<double>(graph.nodes[NodeId(layer)].layer->Macs()) +
         kOperationsPerByte * static_cast<double>(moved.forward + moved.backward);
}

StageBoundary NetPartition::BoundaryOf(int stage) const {
  StageBoundary boundary;
  for (const StageTransfer& value : values) {
    if (value.to == stage) boundary.in.push_back({value.blob, value.dtype, value.has_gradient});
    if (value.from == stage) boundary.out.push_back({value.blob, value.dtype, value.has_gradient});
  }
  return boundary;
}

NetPartition PartitionNet(const NetSpec& net, const NetOptions& options, const Device& device,
                          const PartitionOptions& rule) {
  return Partitioner(net, options, device, rule).Run();
}

}  // namespace trainer
