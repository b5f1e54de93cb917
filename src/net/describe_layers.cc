#include <algorithm>
#include <set>

#include "for_layer.h"
#include "graph.h"
#include "trainer/base/error/error_collector.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/cast.h"
#include "trainer/layers/file_writer.h"
#include "trainer/layers/learns_from_chains.h"

namespace trainer {
namespace {

constexpr char kAutomatic[] = "(automatic)";

bool IsLossType(const std::string& type) { return type.ends_with("Loss"); }

void CheckParamCount(const StepInfo& step) {
  const int declared = static_cast<int>(step.params().size());
  if (step.spec.proto().param_size() > declared) {
    step.spec.Fail("param",
                   Join("it has ", step.spec.proto().param_size(), " param entries but only ",
                        declared, " parameters"),
                   declared);
  }
}

// Caffe's default: one weight of 1 for the single output of a loss layer.
void SetLossWeights(const StepInfo& step, Graph& graph) {
  const auto& weights = step.spec.proto().loss_weight();
  const size_t tops = step.out.size();
  if (weights.empty()) {
    if (!IsLossType(step.spec.type())) return;
    if (tops > 1) {
      step.spec.Fail(
          Join("a loss layer with ", tops,
               " tops needs one loss_weight per top, as in: loss_weight: 1 loss_weight: 0"));
    }
    graph.values[step.out[0]].loss_weight = 1;
    return;
  }
  if (static_cast<size_t>(weights.size()) != tops) {
    step.spec.Fail("loss_weight",
                   Join("loss_weight is given ", weights.size(), " times for ", tops,
                        " tops; give none or one per top"),
                   0);
  }
  for (size_t i = 0; i < tops; ++i) {
    graph.values[step.out[i]].loss_weight = weights[static_cast<int>(i)];
  }
}

// The values that a layer reads, by its bottoms.
std::vector<ValueId> InputsOf(const LayerSpec& spec, const Graph& graph) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < spec.proto().bottom_size(); ++i) {
    const auto found = graph.newest.find(spec.proto().bottom(i));
    if (found == graph.newest.end()) {
      spec.Fail("bottom", Join("unknown bottom blob '", spec.proto().bottom(i), "'"), i);
    }
    inputs.push_back(found->second);
  }
  return inputs;
}

void Connect(StepInfo& step, StepId id, std::vector<ValueId> inputs, Graph& graph) {
  step.in = std::move(inputs);
  for (const ValueId in : step.in) graph.values[in].readers.push_back(id);
  for (const std::string& top : step.spec.proto().top()) {
    ValueInfo value;
    value.name = top;
    value.writer = id;
    step.out.push_back(graph.values.Add(std::move(value)));
    if (!step.is_cast) graph.newest[top] = step.out.back();
  }
}

// What comes from another net is stored as it is there.
DType TypeOf(const StepInfo& step, const std::string& blob, DType said, const NetEdges& edges) {
  if (edges.in.empty() || step.spec.type() != "Input") return said;
  const auto edge = std::ranges::find(edges.in, blob, &NetEdges::Edge::blob);
  return edge == edges.in.end() ? said : edge->dtype;
}

// Caffe allows a name twice. Its own autoencoder has two losses of one name. Before `step` is
// described it has no parameters: a namesake's are enough to refuse it, in place of whatever would
// be wrong with sharing them.
void CheckName(const StepInfo& step, const Graph& graph) {
  if (step.spec.name().empty()) return;
  for (const StepInfo& other : graph.steps) {
    if (&other == &step || other.spec.name() != step.spec.name()) continue;
    if (other.params().empty() && step.params().empty()) continue;
    step.spec.Fail("name",
                   Join("another layer has this name (", other.spec.Where("name").ToString(),
                        "); weights are saved by layer name, so each layer needs its own name"));
  }
}

// Asks the layer, and makes what it says that of its step and of the values that it writes.
void DescribeStep(StepId id, const BuildEnv& env, Graph& graph) {
  StepInfo& step = graph.steps[id];
  InputShapes shapes;
  std::vector<DType> types;
  bool inputs_may_shrink = false;
  for (const ValueId in : step.in) {
    shapes.push_back(&graph.values[in].shape);
    types.push_back(graph.values[in].dtype);
    inputs_may_shrink = inputs_may_shrink || graph.values[in].may_shrink;
  }
  CheckName(step, graph);
  step.said = Describe(step, id.number, shapes, types, env.options, env.params, &graph.fresh);
  step.needs = step.said.needs;
  step.shapes_vary = inputs_may_shrink;
  for (size_t i = 0; i < step.out.size(); ++i) {
    const Description::Output& said = step.said.out[i];
    ValueInfo& value = graph.values[step.out[i]];
    value.shape = said.shape;
    value.dtype = TypeOf(step, value.name, said.dtype, env.options.edges);
    value.view_of = said.view_of < 0 ? ValueId() : step.in[static_cast<size_t>(said.view_of)];
    value.persists = said.persists;
    value.may_shrink = said.may_shrink || inputs_may_shrink;
    value.stays_f32 = value.stays_f32 || said.stays_f32;
    step.shapes_vary = step.shapes_vary || value.may_shrink;
  }
}

std::string KeyOf(const LayerSpec& spec, const Graph& graph) {
  const auto used = [&](const std::string& key) {
    return std::ranges::any_of(graph.steps, [&](const StepInfo& step) { return step.key == key; });
  };
  std::string key = spec.name();
  for (int n = 2; used(key); ++n) key = Join(spec.name(), "#", n);
  return key;
}

// Adds layers to the graph, one after the other.
class StepMaker {
 public:
  StepMaker(const BuildEnv& env, Graph& graph) : env_(env), graph_(graph) {}

  // With the casts that it needs for its inputs to be stored as `wish` says.
  void Add(const LayerSpec& spec, std::optional<DType> wish) {
    const std::string key = KeyOf(spec, graph_);
    std::unique_ptr<Layer> layer = Make(spec, key);
    std::vector<ValueId> inputs = InputsOf(spec, graph_);
    const bool f32_inputs =
        std::ranges::all_of(inputs, [&](ValueId in) { return graph_.values[in].stays_f32; });
    const LayerDoc& doc = LayerDocs().at(spec.type());
    const bool stays_f32 = doc.storage != Storage::kF32 && !inputs.empty() && f32_inputs;
    CastInputs(spec, doc, stays_f32 ? DType::kF32 : wish, inputs);
    const StepInfo& step = AddStep(spec, key, std::move(layer), std::move(inputs));
    for (const ValueId out : step.out) {
      graph_.values[out].stays_f32 = graph_.values[out].stays_f32 || stays_f32;
    }
    CheckParamCount(step);
    CheckName(step, graph_);
    SetLossWeights(step, graph_);
  }

  // What can be said of a layer whose inputs are not known: whether it can be made.
  void Try(const LayerSpec& spec) const { Make(spec, KeyOf(spec, graph_)); }

 private:
  std::unique_ptr<Layer> Make(const LayerSpec& spec, const std::string& key) const {
    LayerEnv env;
    env.reading.phase = spec.proto().phase();
    env.reading.key = {env_.options.seed, StreamOf(key, env.reading.phase)};
    env.reading.replica = env_.options.replica;
    env.reading.parts = env_.options.parts;
    env.reading.decode_threads = 0;
    env.reading.host_memory = &env_.device.HostMemory();
    env.reading.bytes = env_.device.PrefersBytes();
    return ForLayer(spec, [&] {
      std::unique_ptr<Layer> layer = MakeLayer(spec, env);
      if (auto* writer = dynamic_cast<FileWriter*>(layer.get())) {
        writer->Allow(env_.options.output_files, env_.options.snapshot_folder);
      }
      if (auto* learner = dynamic_cast<LearnsFromChains*>(layer.get())) {
        learner->UseChains(env_.options.chain);
      }
      return layer;
    });
  }

  const StepInfo& AddStep(const LayerSpec& spec, const std::string& key,
                          std::unique_ptr<Layer> layer, std::vector<ValueId> inputs,
                          bool is_cast = false) {
    const StepId id = graph_.steps.Add(StepInfo(spec));
    StepInfo& step = graph_.steps[id];
    step.key = key;
    step.layer = std::move(layer);
    step.is_cast = is_cast;
    Connect(step, id, std::move(inputs), graph_);
    DescribeStep(id, env_, graph_);
    return step;
  }

  void CastInputs(const LayerSpec& reader, const LayerDoc& doc, std::optional<DType> wish,
                  std::vector<ValueId>& inputs) {
    std::optional<DType> common = wish;
    for (size_t i = 0; i < inputs.size() && !wish; ++i) {
      const Storage use = doc.OfInput(static_cast<int>(i));
      if (use == Storage::kF32 || use == Storage::kAny) continue;
      const DType type = graph_.values[inputs[i]].dtype;
      common = common.value_or(type) == type ? type : DType::kF32;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Storage use = doc.OfInput(static_cast<int>(i));
      if (use == Storage::kAny) continue;
      const DType type = use == Storage::kF32 ? DType::kF32 : common.value_or(DType::kF32);
      if (graph_.values[inputs[i]].dtype != type) inputs[i] = AddCast(reader, inputs[i], type);
    }
  }

  // "data as bf16". The new value's id.
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

  const BuildEnv& env_;
  Graph& graph_;
};

// Errors that only show when a device plan is made, of the layers that could be described.
void CollectPrepareErrors(const BuildEnv& env, const Graph& graph, ErrorCollector* errors) {
  for (const StepInfo& step : graph.steps) {
    const bool described =
        step.said.in.size() == step.in.size() && step.said.out.size() == step.out.size();
    if (!described) continue;
    errors->Try([&] { Prepare(step, step.said, env.options, env.device); });
  }
}

}  // namespace

void DescribeLayers(const std::vector<LayerSpec>& layers,
                    const std::vector<std::optional<DType>>& types, const BuildEnv& env,
                    Graph& graph) {
  graph.steps.Reserve(2 * layers.size());
  StepMaker maker(env, graph);
  ErrorCollector errors;
  std::set<std::string> unknown;  // what a layer with an error writes, or one that reads such
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
  for (ValueInfo& value : graph.values) value.is_output = value.readers.empty();
}

void DescribeAgain(StepId step, const BuildEnv& env, Graph& graph) {
  DescribeStep(step, env, graph);
}

void PrepareLayers(const BuildEnv& env, Graph& graph) {
  ErrorCollector errors;
  for (StepInfo& step : graph.steps) {
    if (step.fused_into) continue;
    errors.Try([&] { step.needs = Prepare(step, step.said, env.options, env.device); });
  }
  errors.Throw();
}

}  // namespace trainer
