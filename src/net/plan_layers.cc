#include <algorithm>
#include <new>
#include <set>
#include <stdexcept>
#include <tuple>

#include "graph.h"
#include "planner.h"
#include "trainer/base/error_group.h"
#include "trainer/base/text.h"
#include "trainer/config/layer_error.h"
#include "trainer/layers/cast.h"
#include "trainer/layers/file_writer.h"

namespace trainer {
namespace {

constexpr char kAutomatic[] = "(automatic)";

// Runs a part of planning a layer. What that throws names the layer and its line, whoever threw it:
// shapes and the backend know no file.
template <class Step>
auto ForLayer(const LayerSpec& spec, const Step& step) {
  try {
    return step();
  } catch (const LayerError&) {
    throw;
  } catch (const Error& error) {
    spec.FailWith(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    spec.FailWith(ErrorCode::kResource, "planning it takes more memory than there is");
  } catch (const std::length_error&) {
    spec.FailWith(ErrorCode::kConfig, "its sizes are larger than any memory");
  }
}

bool IsLossType(const std::string& type) { return type.ends_with("Loss"); }

void CheckParamCount(const StepInfo& step) {
  const int declared = static_cast<int>(step.params.size());
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
    graph.values[static_cast<size_t>(step.out[0])].loss_weight = 1;
    return;
  }
  if (static_cast<size_t>(weights.size()) != tops) {
    step.spec.Fail("loss_weight",
                   Join("loss_weight is given ", weights.size(), " times for ", tops,
                        " tops; give none or one per top"),
                   0);
  }
  for (size_t i = 0; i < tops; ++i) {
    graph.values[static_cast<size_t>(step.out[i])].loss_weight = weights[static_cast<int>(i)];
  }
}

// The values that a layer reads, by its bottoms.
std::vector<int> InputsOf(const LayerSpec& spec, const Graph& graph) {
  std::vector<int> inputs;
  for (int i = 0; i < spec.proto().bottom_size(); ++i) {
    const auto found = graph.newest.find(spec.proto().bottom(i));
    if (found == graph.newest.end()) {
      spec.Fail("bottom", Join("unknown bottom blob '", spec.proto().bottom(i), "'"), i);
    }
    inputs.push_back(found->second);
  }
  return inputs;
}

void Connect(StepInfo& step, std::vector<int> inputs, int number, Graph& graph) {
  step.in = std::move(inputs);
  for (const int in : step.in) graph.values[static_cast<size_t>(in)].readers.push_back(number);
  for (const std::string& top : step.spec.proto().top()) {
    ValueInfo value;
    value.name = top;
    value.writer = number;
    step.out.push_back(static_cast<int>(graph.values.size()));
    if (!step.is_cast) graph.newest[top] = step.out.back();
    graph.values.push_back(std::move(value));
  }
  step.no_gradient.assign(step.in.size(), false);
  step.keep_in.assign(step.in.size(), false);
  step.keep_out.assign(step.out.size(), false);
}

std::string KeyOf(const LayerSpec& spec, const Graph& graph) {
  const auto used = [&](const std::string& key) {
    return std::ranges::any_of(graph.steps, [&](const StepInfo& step) { return step.key == key; });
  };
  std::string key = spec.name();
  for (int n = 2; used(key); ++n) key = Join(spec.name(), "#", n);
  return key;
}

// Caffe allows a name twice. Its own autoencoder has two losses of one name.
void CheckName(const StepInfo& step, const Graph& graph) {
  if (step.spec.name().empty()) return;
  for (const StepInfo& other : graph.steps) {
    if (&other == &step || other.spec.name() != step.spec.name()) continue;
    if (other.params.empty() && step.params.empty()) continue;
    step.spec.Fail("name",
                   Join("another layer has this name (", other.spec.Where("name").ToString(),
                        "); weights are saved by name, so each needs its own"));
  }
}

// Marks a layer behind an input whose shape varies, and what it writes.
void Follow(StepInfo& step, Graph& graph) {
  for (const int in : step.in) {
    const ValueInfo& value = graph.values[static_cast<size_t>(in)];
    step.follows = step.follows || value.varies;
    step.planned_in.push_back(value.shape);
  }
  if (!step.follows) return step.planned_in.clear();
  for (const int out : step.out) graph.values[static_cast<size_t>(out)].varies = true;
}

// Adds layers to the graph, one after the other.
class StepMaker {
 public:
  StepMaker(const NetOptions& options, const Device& device, ParamStore& params, Graph& graph)
      : options_(options), device_(device), params_(params), graph_(graph) {}

  // With the casts that it needs for its inputs to be stored as `wish` says.
  void Add(const LayerSpec& spec, std::optional<DType> wish) {
    const std::string key = KeyOf(spec, graph_);
    std::unique_ptr<Layer> layer = Make(spec, key);
    std::vector<int> inputs = InputsOf(spec, graph_);
    const bool exact = std::ranges::all_of(inputs, [&](int in) { return Value(in).exact; });
    const LayerDoc& doc = LayerDocs().at(spec.type());
    const bool passes = doc.storage != Storage::kF32 && !inputs.empty() && exact;
    CastInputs(spec, doc, passes ? DType::kF32 : wish, inputs);
    StepInfo& step = AddStep(spec, key, std::move(layer), std::move(inputs));
    for (const int out : step.out) Value(out).exact = Value(out).exact || passes;
    CheckParamCount(step);
    CheckName(step, graph_);
    SetLossWeights(step, graph_);
  }

  // What can be said of a layer whose inputs are not known: whether it can be made.
  void Try(const LayerSpec& spec) const { Make(spec, KeyOf(spec, graph_)); }

 private:
  std::unique_ptr<Layer> Make(const LayerSpec& spec, const std::string& key) const {
    LayerEnv env;
    env.phase = spec.proto().phase();
    env.key = {options_.seed, StreamOf(key, env.phase)};
    env.replica = options_.replica;
    return ForLayer(spec, [&] {
      std::unique_ptr<Layer> layer = MakeLayer(spec, env);
      if (auto* writer = dynamic_cast<FileWriter*>(layer.get())) {
        writer->Allow(options_.output_files);
      }
      return layer;
    });
  }

  ValueInfo& Value(int id) { return graph_.values[static_cast<size_t>(id)]; }

  StepInfo& AddStep(const LayerSpec& spec, const std::string& key, std::unique_ptr<Layer> layer,
                    std::vector<int> inputs, bool is_cast = false) {
    const int number = graph_.NumSteps();
    StepInfo& step = graph_.steps.emplace_back(spec);
    step.key = key;
    step.layer = std::move(layer);
    step.is_cast = is_cast;
    Connect(step, std::move(inputs), number, graph_);
    Planner planner(options_, device_, params_, graph_, step, number);
    ForLayer(spec, [&] { step.layer->Plan(planner); });
    Follow(step, graph_);
    return step;
  }

  void CastInputs(const LayerSpec& reader, const LayerDoc& doc, std::optional<DType> wish,
                  std::vector<int>& inputs) {
    std::optional<DType> common = wish;
    for (size_t i = 0; i < inputs.size() && !wish; ++i) {
      const Storage use = doc.OfInput(static_cast<int>(i));
      if (use == Storage::kF32 || use == Storage::kAny) continue;
      const DType type = Value(inputs[i]).dtype;
      common = common.value_or(type) == type ? type : DType::kF32;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Storage use = doc.OfInput(static_cast<int>(i));
      if (use == Storage::kAny) continue;
      const DType type = use == Storage::kF32 ? DType::kF32 : common.value_or(DType::kF32);
      if (Value(inputs[i]).dtype != type) inputs[i] = AddCast(reader, inputs[i], type);
    }
  }

  // "data as bf16". The new value's id.
  int AddCast(const LayerSpec& reader, int input, DType to) {
    const std::string& blob = Value(input).name;
    caffe::LayerParameter proto;
    proto.set_name(Join(blob, " as ", NameOf(to)));
    proto.set_type("Cast");
    proto.add_bottom(blob);
    proto.add_top(proto.name());
    proto.set_phase(reader.proto().phase());
    const LayerSpec spec(proto, reader.Where());
    return AddStep(spec, KeyOf(spec, graph_), MakeCast(to), {input}, true).out[0];
  }

  const NetOptions& options_;
  const Device& device_;
  ParamStore& params_;
  Graph& graph_;
};

}  // namespace

void PlanLayers(const std::vector<LayerSpec>& layers,
                const std::vector<std::optional<DType>>& storage, const NetOptions& options,
                const Device& device, ParamStore& params, Graph& graph) {
  graph.steps.reserve(2 * layers.size());
  StepMaker maker(options, device, params, graph);
  ErrorList errors;
  std::set<std::string> unknown;  // what a layer with an error writes, or one behind it
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerSpec spec = layers[i];
    caffe::LayerParameter& proto = spec.mutable_proto();
    if (!proto.has_phase()) proto.set_phase(options.state.phase());
    if (proto.top_size() == 0 && IsLossType(proto.type())) proto.add_top(kAutomatic);
    const bool lost = std::ranges::any_of(
        proto.bottom(), [&](const std::string& blob) { return unknown.contains(blob); });
    const bool good =
        Attempt(&errors, [&] { lost ? maker.Try(spec) : maker.Add(spec, storage[i]); });
    for (const std::string& top : proto.top()) {
      unknown.erase(top);
      if (lost || !good) unknown.insert(top);
    }
  }
  if (!errors.empty()) ThrowAll(std::move(errors));
  for (ValueInfo& value : graph.values) value.is_output = value.readers.empty();
}

void PlanStep(int number, const NetOptions& options, const Device& device, ParamStore& params,
              Graph& graph) {
  StepInfo& step = graph.steps[static_cast<size_t>(number)];
  step.keep_in.assign(step.in.size(), false);
  step.keep_out.assign(step.out.size(), false);
  step.no_gradient.assign(step.in.size(), false);
  step.allow_in_place = false;
  step.grad_in_place = -1;
  step.scratch_bytes = step.workspace_bytes = step.state_bytes = 0;
  step.params.clear();
  Planner planner(options, device, params, graph, step, number);
  ForLayer(step.spec, [&] { step.layer->Plan(planner); });
}

void PlanAgain(int number, const NetOptions& options, const Device& device, ParamStore& params,
               Graph& graph) {
  const StepInfo& step = graph.steps[static_cast<size_t>(number)];
  const auto wishes = [&] {
    return std::tuple(step.keep_in, step.keep_out, step.no_gradient, step.allow_in_place,
                      step.state_bytes, step.params);
  };
  const auto before = wishes();
  PlanStep(number, options, device, params, graph);
  if (wishes() == before) return;
  throw Error(ErrorCode::kInternal, step.spec.Where(),
              Join("layer '", step.spec.name(), "' (", step.spec.type(),
                   ") planned for another shape wants other memory than before"));
}

}  // namespace trainer
