#include "export/net_export.h"

#include <algorithm>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/predict/blob_source.h"

namespace trainer {
namespace {

// Returns whether the program inserted the layer, or the layer copies its input.
bool IsCopy(const Node& node) { return node.is_cast || node.spec.type() == "Split"; }

// Returns whether the outputs of the layer depend on shapes and parameters only.
bool IsConstantSource(const Node& node) {
  const auto rule = ExportRules().find(node.spec.type());
  return rule != ExportRules().end() && rule->second.is_constant;
}

// Fills the inputs with zeros, because all layers accept zeros, even as indices.
void ZeroInputs(const Net& net) {
  for (const InputBlob& input : InputBlobs(net)) {
    const std::vector<float> zeros(static_cast<size_t>(input.value.Count()), 0.0f);
    net.WriteNchw(zeros, input.value);
  }
}

}  // namespace

NetExport::NetExport(const NetSpec& spec, Net& net, const OnnxExportOptions& options,
                     onnx::GraphProto* graph)
    : spec_(spec),
      net_(net),
      in_(net.graph()),
      options_(options),
      graph_(graph),
      writer_(graph, options.opset),
      axes_(FindFreeAxes(spec, net, options.fixed_batch)) {}

void NetExport::Write() {
  FindOutputs();
  MarkConstants();
  FindNeeded();
  ComputeConstants();
  std::set<ValueId> kept;
  for (const auto& [blob, id] : outputs_) kept.insert(id);
  folding_.Plan(in_, kept);
  WriteInputs();
  for (const NodeId id : in_.nodes.Ids()) {
    if (IsNeeded(id)) WriteLayer(id);
  }
  WriteOutputs();
}

std::vector<std::string> NetExport::Notes() const {
  std::vector<std::string> notes;
  notes.push_back(axes_.why_fixed.empty() ? "The batch size is free"
                                          : Join("The batch size is fixed: ", axes_.why_fixed));
  if (folded_layers_ > 0) {
    notes.push_back(Join("Other nodes compute ", Counted(folded_layers_, "layer"),
                         " of types BatchNorm, Scale and Bias"));
  }
  if (stateful_layers_ > 0) {
    notes.push_back(Join("The states of ", Counted(stateful_layers_, "recurrent layer"),
                         " are 0 at the beginning of each call; to keep them between calls, set "
                         "expose_hidden in the net"));
  }
  return notes;
}

void NetExport::FindOutputs() {
  if (!options_.outputs.empty()) RequireBlobs(net_, "output", options_.outputs);
  for (const std::string& blob : options_.outputs) {
    const std::pair output(blob, in_.latest_by_name.at(blob));
    if (std::ranges::find(outputs_, output) == outputs_.end()) outputs_.push_back(output);
  }
  if (!outputs_.empty()) return;
  for (const ValueId id : in_.values.Ids()) {
    if (in_.values[id].is_output) outputs_.emplace_back(in_.values[id].name, id);
  }
  if (outputs_.empty()) {
    throw Error(ErrorCode::kConfig, {spec_.file}, "the net has no output that could be exported");
  }
}

// Marks a value as constant if its layer's outputs are constant, or if all inputs of its layer are.
void NetExport::MarkConstants() {
  for (const Node& node : in_.nodes) {
    const bool has_constant_inputs =
        !node.in.empty() &&
        std::ranges::all_of(node.in, [&](ValueId in) { return constants_.contains(in); });
    if (has_constant_inputs || IsConstantSource(node)) {
      constants_.insert(node.out.begin(), node.out.end());
    }
  }
}

// Walks from the outputs to the inputs. A constant layer needs only those inputs that are constant
// too, because e.g. a PriorBox reads nothing but the shapes of its inputs.
void NetExport::FindNeeded() {
  std::set<ValueId> values;
  for (const auto& [blob, id] : outputs_) values.insert(id);
  for (int n = in_.nodes.size(); n-- > 0;) {
    const Node& node = in_.nodes[NodeId(n)];
    const bool is_needed =
        std::ranges::any_of(node.out, [&](ValueId out) { return values.contains(out); });
    if (!is_needed) continue;
    needed_.insert(NodeId(n));
    const bool is_constant = constants_.contains(node.out[0]);
    for (const ValueId in : node.in) {
      if (!is_constant || constants_.contains(in)) values.insert(in);
    }
    const auto check = IsConstantSource(node) ? ExportRules().at(node.spec.type()).write : nullptr;
    if (check != nullptr) check(LayerExport(*this, NodeId(n)));
  }
}

void NetExport::ComputeConstants() {
  const bool are_needed = std::ranges::any_of(
      needed_, [&](NodeId id) { return constants_.contains(in_.nodes[id].out[0]); });
  if (!are_needed) return;
  ZeroInputs(net_);
  net_.Forward();
}

FloatArray NetExport::ReadConstant(ValueId id) const {
  const Tensor value = net_.Value(id);
  FloatArray array;
  array.dims.assign(value.shape.dims().begin(), value.shape.dims().end());
  array.values.resize(static_cast<size_t>(value.Count()));
  net_.ReadNchw(value, array.values);
  return array;
}

std::string NetExport::TargetName(ValueId id) const {
  const Value& value = in_.values[id];
  const auto latest = in_.latest_by_name.find(value.name);
  if (latest != in_.latest_by_name.end() && latest->second == id) return value.name;
  return Join(in_.nodes[value.producer].spec.name(), "/", value.name);
}

const std::string& NetExport::NameOf(ValueId id) {
  std::string& name = names_[id];
  if (!name.empty()) return name;
  const Node& producer = in_.nodes[in_.values[id].producer];
  if (constants_.contains(id)) {
    const FloatArray array = ReadConstant(id);
    name = writer_.Floats(array.values, array.dims, TargetName(id));
  } else if (IsCopy(producer)) {
    name = NameOf(producer.in[0]);
  } else {
    producer.spec.Fail(Join("cannot be exported to ONNX: '", in_.values[id].name,
                            "' has a meaning in training only; name other outputs with --output"));
  }
  return name;
}

void NetExport::DeclareValue(const std::string& name, ValueId id,
                             onnx::ValueInfoProto* info) const {
  info->set_name(name);
  onnx::TypeProto::Tensor& type = *info->mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  const FreeShape& shape = axes_.shapes[id];
  type.mutable_shape();  // a scalar needs a shape without axes
  for (int axis = 0; axis < shape.Rank(); ++axis) {
    onnx::TensorShapeProto::Dimension& dim = *type.mutable_shape()->add_dim();
    const std::string& axis_name = axes_.names[id][static_cast<size_t>(axis)];
    if (!shape.IsFree(axis)) {
      dim.set_dim_value(shape[axis]);
    } else if (!axis_name.empty()) {
      dim.set_dim_param(axis_name);
    }
  }
}

void NetExport::WriteInputs() {
  for (const NodeId id : in_.nodes.Ids()) {
    const Node& node = in_.nodes[id];
    if (!IsNeeded(id) || node.spec.type() != "Input") continue;
    for (const ValueId out : node.out) {
      const Value& value = in_.values[out];
      const std::string name = writer_.NewValue(value.name);
      DeclareValue(name, out, graph_->add_input());
      names_[out] = options_.preprocessing ? WritePreprocessing(name, value) : name;
    }
  }
}

std::string NetExport::WritePreprocessing(const std::string& input, const Value& value) {
  const OnnxPreprocessing& how = *options_.preprocessing;
  writer_.SetScope("preprocess");
  std::string x = input;
  if (how.rgb && value.shape[1] == 3) {
    x = writer_.Add("Gather", {x, writer_.Ints({2, 1, 0})}, {{"axis", 1}});
  }
  x = writer_.Line(x, how.factor, 0);
  if (!how.mean.empty()) {
    const bool is_image = static_cast<int64_t>(how.mean.size()) != value.shape[1];
    const std::vector<int64_t> dims = {1, value.shape[1], is_image ? value.shape[2] : 1,
                                       is_image ? value.shape[3] : 1};
    x = writer_.Add("Sub", {x, writer_.Floats(how.mean, dims, "preprocess.mean")});
  }
  return writer_.Line(x, how.scale, 0);
}

void NetExport::WriteLayer(NodeId id) {
  const Node& node = in_.nodes[id];
  const bool is_constant = !node.out.empty() && constants_.contains(node.out[0]);
  if (is_constant || IsCopy(node) || node.spec.type() == "Input") return;
  if (folding_.IsFolded(id)) {
    ++folded_layers_;
    return;
  }
  const std::map<std::string, ExportRule>& rules = ExportRules();
  const auto rule = rules.find(node.spec.type());
  const LayerExport layer(*this, id);
  if (rule == rules.end()) layer.Refuse("its type is not known to the exporter");
  if (rule->second.why_not != nullptr) layer.Refuse(rule->second.why_not);
  writer_.SetScope(node.spec.name());
  rule->second.write(layer);
  const std::string& type = node.spec.type();
  const bool is_recurrent = type == "LSTM" || type == "RNN";
  if (is_recurrent && !node.spec.proto().recurrent_param().expose_hidden()) ++stateful_layers_;
}

// Adds an Identity for a blob whose value another layer computes, e.g. the output of a Dropout.
void NetExport::WriteOutputs() {
  for (const auto& [blob, id] : outputs_) {
    std::string name = NameOf(id);
    if (name != blob) {
      writer_.SetScope(blob);
      name = writer_.Add("Identity", {name});
      if (writer_.Rename(name, blob)) name = blob;
    }
    DeclareValue(name, id, graph_->add_output());
  }
}

}  // namespace trainer
