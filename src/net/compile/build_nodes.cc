#include <algorithm>
#include <set>

#include "compile/at_layer.h"
#include "compile/build.h"
#include "compile/node_signature.h"
#include "trainer/base/error/error_collector.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/cast.h"
#include "trainer/net/graph.h"

namespace trainer {
namespace {

constexpr char kAutomatic[] = "(automatic)";

bool IsLossType(const std::string& type) { return type.ends_with("Loss"); }

void CheckParamCount(const Node& node) {
  const int declared = static_cast<int>(node.params.size());
  if (node.spec.proto().param_size() > declared) {
    node.spec.Fail("param",
                   Join("it has ", node.spec.proto().param_size(), " param entries but only ",
                        declared, " parameters"),
                   declared);
  }
}

// Applies Caffe's default: the single output of a loss layer has weight 1.
void SetLossWeights(const Node& node, Graph& graph) {
  const auto& weights = node.spec.proto().loss_weight();
  const size_t tops = node.out.size();
  if (weights.empty()) {
    if (!IsLossType(node.spec.type())) return;
    if (tops > 1) {
      node.spec.Fail(
          Join("a loss layer with ", tops,
               " tops needs one loss_weight per top, as in: loss_weight: 1 loss_weight: 0"));
    }
    graph.values[node.out[0]].loss_weight = 1;
    return;
  }
  if (static_cast<size_t>(weights.size()) != tops) {
    node.spec.Fail("loss_weight",
                   Join("loss_weight is given ", weights.size(), " times for ", tops,
                        " tops; give none or one per top"),
                   0);
  }
  for (size_t i = 0; i < tops; ++i) {
    graph.values[node.out[i]].loss_weight = weights[static_cast<int>(i)];
  }
}

// Returns the values of a layer's bottoms.
std::vector<ValueId> InputsOf(const LayerSpec& spec, const Graph& graph) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < spec.proto().bottom_size(); ++i) {
    const auto found = graph.latest_by_name.find(spec.proto().bottom(i));
    if (found == graph.latest_by_name.end()) {
      spec.Fail("bottom", Join("unknown bottom blob '", spec.proto().bottom(i), "'"), i);
    }
    inputs.push_back(found->second);
  }
  return inputs;
}

void Connect(Node& node, NodeId id, std::vector<ValueId> inputs, Graph& graph) {
  node.in = std::move(inputs);
  for (const ValueId in : node.in) graph.values[in].consumers.push_back(id);
  for (const std::string& top : node.spec.proto().top()) {
    Value value;
    value.name = top;
    value.producer = id;
    node.out.push_back(graph.values.Add(std::move(value)));
    if (!node.is_cast) graph.latest_by_name[top] = node.out.back();
  }
}

// A boundary value keeps the dtype that it has in the stage that computes it.
DType TypeOf(const Node& node, const std::string& blob, DType signature,
             const StageBoundary& edges) {
  if (edges.in.empty() || node.spec.type() != "Input") return signature;
  const auto edge = std::ranges::find(edges.in, blob, &StageBoundary::BoundaryTensor::blob);
  return edge == edges.in.end() ? signature : edge->dtype;
}

// Caffe allows two layers of the same name (its own autoencoder has two losses of one name). Here
// only layers without parameters may share a name. Called before Setup as well, so that a namesake
// with parameters is reported first, not an error about sharing them.
void CheckName(const Node& node, const Graph& graph) {
  if (node.spec.name().empty()) return;
  for (const Node& other : graph.nodes) {
    if (&other == &node || other.spec.name() != node.spec.name()) continue;
    if (other.params.empty() && node.params.empty()) continue;
    node.spec.Fail("name",
                   Join("another layer has this name (", other.spec.Where("name").ToString(),
                        "); weights are saved by layer name, so each layer needs its own name"));
  }
}

// Calls the layer's Setup and copies its declarations to the node and the values that it writes.
void DescribeStep(NodeId id, const CompileEnv& env, Graph& graph) {
  Node& node = graph.nodes[id];
  InputShapes shapes;
  std::vector<DType> types;
  bool inputs_are_dynamic = false;
  for (const ValueId in : node.in) {
    shapes.push_back(&graph.values[in].shape);
    types.push_back(graph.values[in].dtype);
    inputs_are_dynamic = inputs_are_dynamic || graph.values[in].is_dynamic;
  }
  CheckName(node, graph);
  node.signature = SetupNode(node, shapes, types, env.options);
  node.params =
      ParamsOf(node, node.signature, env.options, env.params, &graph.new_params, id.number);
  node.needs = node.signature.needs;
  node.has_dynamic_shape = inputs_are_dynamic;
  for (size_t i = 0; i < node.out.size(); ++i) {
    const NodeSignature::Output& signature = node.signature.out[i];
    Value& value = graph.values[node.out[i]];
    value.shape = signature.shape;
    value.dtype = TypeOf(node, value.name, signature.dtype, env.options.boundary);
    value.view_of =
        signature.view_of < 0 ? ValueId() : node.in[static_cast<size_t>(signature.view_of)];
    value.persists = signature.persists;
    value.is_dynamic = signature.is_dynamic || inputs_are_dynamic;
    value.keeps_f32 = value.keeps_f32 || signature.keeps_f32;
    node.has_dynamic_shape = node.has_dynamic_shape || value.is_dynamic;
  }
}

std::string KeyOf(const LayerSpec& spec, const Graph& graph) {
  const auto used = [&](const std::string& key) {
    return std::ranges::any_of(graph.nodes, [&](const Node& node) { return node.key == key; });
  };
  std::string key = spec.name();
  for (int n = 2; used(key); ++n) key = Join(spec.name(), "#", n);
  return key;
}

// Adds layers to the graph in order.
class GraphBuilder {
 public:
  GraphBuilder(const CompileEnv& env, Graph& graph) : env_(env), graph_(graph) {}

  // Adds a layer and the casts that store its inputs as `wish` says.
  void Add(const LayerSpec& spec, std::optional<DType> wish) {
    const std::string key = KeyOf(spec, graph_);
    std::unique_ptr<Layer> layer = Make(spec, key);
    std::vector<ValueId> inputs = InputsOf(spec, graph_);
    const bool f32_inputs =
        std::ranges::all_of(inputs, [&](ValueId in) { return graph_.values[in].keeps_f32; });
    const LayerDoc& doc = LayerDocs().at(spec.type());
    const bool keeps_f32 = doc.dtypes != DtypePolicy::kF32 && !inputs.empty() && f32_inputs;
    CastInputs(spec, doc, keeps_f32 ? DType::kF32 : wish, inputs);
    const Node& node = AddStep(spec, key, std::move(layer), std::move(inputs));
    for (const ValueId out : node.out) {
      graph_.values[out].keeps_f32 = graph_.values[out].keeps_f32 || keeps_f32;
    }
    CheckParamCount(node);
    CheckName(node, graph_);
    SetLossWeights(node, graph_);
  }

  // Only creates a layer whose inputs are unknown, to find the errors that this already shows.
  void Try(const LayerSpec& spec) const { Make(spec, KeyOf(spec, graph_)); }

 private:
  std::unique_ptr<Layer> Make(const LayerSpec& spec, const std::string& key) const {
    LayerEnv env;
    env.reading.phase = spec.proto().phase();
    env.reading.key = {env_.options.seed, RngStreamOf(key, env.reading.phase)};
    env.reading.rank = env_.options.rank;
    env.reading.virtual_ranks = env_.options.virtual_ranks;
    env.reading.decode_threads = 0;
    env.reading.host_memory = &env_.device.PinnedMemory();
    env.reading.bytes = env_.device.PrefersUint8();
    env.output_files = env_.options.output_files;
    env.snapshot_folder = env_.options.snapshot_folder;
    env.chain = env_.options.chain;
    return AtLayer(spec, [&] { return MakeLayer(spec, env); });
  }

  const Node& AddStep(const LayerSpec& spec, const std::string& key, std::unique_ptr<Layer> layer,
                      std::vector<ValueId> inputs, bool is_cast = false) {
    const NodeId id = graph_.nodes.Add(Node(spec));
    Node& node = graph_.nodes[id];
    node.key = key;
    node.layer = std::move(layer);
    node.is_cast = is_cast;
    Connect(node, id, std::move(inputs), graph_);
    DescribeStep(id, env_, graph_);
    return node;
  }

  void CastInputs(const LayerSpec& reader, const LayerDoc& doc, std::optional<DType> wish,
                  std::vector<ValueId>& inputs) {
    std::optional<DType> common = wish;
    for (size_t i = 0; i < inputs.size() && !wish; ++i) {
      const DtypePolicy use = doc.PolicyOfInput(static_cast<int>(i));
      if (use == DtypePolicy::kF32 || use == DtypePolicy::kAny) continue;
      const DType type = graph_.values[inputs[i]].dtype;
      common = common.value_or(type) == type ? type : DType::kF32;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const DtypePolicy use = doc.PolicyOfInput(static_cast<int>(i));
      if (use == DtypePolicy::kAny) continue;
      const DType type = use == DtypePolicy::kF32 ? DType::kF32 : common.value_or(DType::kF32);
      if (graph_.values[inputs[i]].dtype != type) inputs[i] = AddCast(reader, inputs[i], type);
    }
  }

  // Adds a cast named "data as bf16" and returns its output.
  ValueId AddCast(const LayerSpec& reader, ValueId input, DType to) {
    const std::string& blob = graph_.values[input].name;
    caffe::LayerParameter proto;
    proto.set_name(Join(blob, " as ", NameOf(to)));
    proto.set_type("Cast");
    proto.add_bottom(blob);
    proto.add_top(proto.name());
    proto.set_phase(reader.proto().phase());
    const LayerSpec spec(proto, reader.Where());
    return AddStep(spec, KeyOf(spec, graph_), MakeCast(to), {input}, true).out[0];
  }

  const CompileEnv& env_;
  Graph& graph_;
};

// Collects errors that appear only in Prepare, from the layers whose Setup succeeded.
void CollectPrepareErrors(const CompileEnv& env, const Graph& graph, ErrorCollector* errors) {
  for (const Node& node : graph.nodes) {
    const bool described =
        node.signature.in.size() == node.in.size() && node.signature.out.size() == node.out.size();
    if (!described) continue;
    errors->Try([&] { PrepareNode(node, node.signature, env.options, env.device); });
  }
}

}  // namespace

void BuildNodes(const std::vector<LayerSpec>& layers,
                const std::vector<std::optional<DType>>& types, const CompileEnv& env,
                Graph& graph) {
  graph.nodes.Reserve(2 * layers.size());
  GraphBuilder maker(env, graph);
  ErrorCollector errors;
  std::set<std::string> unknown;  // outputs that an error in an earlier layer makes unknown
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerSpec spec = layers[i];
    caffe::LayerParameter& proto = spec.mutable_proto();
    if (!proto.has_phase()) proto.set_phase(env.options.state.phase());
    if (proto.top_size() == 0 && IsLossType(proto.type())) proto.add_top(kAutomatic);
    const bool lost = std::ranges::any_of(
        proto.bottom(), [&](const std::string& blob) { return unknown.contains(blob); });
    const bool good = errors.Try([&] { lost ? maker.Try(spec) : maker.Add(spec, types[i]); });
    for (const std::string& top : proto.top()) {
      unknown.erase(top);
      if (lost || !good) unknown.insert(top);
    }
  }
  if (!errors.empty()) {
    CollectPrepareErrors(env, graph, &errors);
    errors.Throw();
  }
  for (Value& value : graph.values) value.is_output = value.consumers.empty();
}

void SetupAgain(NodeId node, const CompileEnv& env, Graph& graph) {
  DescribeStep(node, env, graph);
}

void PrepareNodes(const CompileEnv& env, Graph& graph) {
  ErrorCollector errors;
  for (Node& node : graph.nodes) {
    if (node.fused_into) continue;
    errors.Try([&] { node.needs = PrepareNode(node, node.signature, env.options, env.device); });
  }
  errors.Throw();
}

}  // namespace trainer
