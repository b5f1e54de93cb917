#include "import/import_graph.h"

#include <algorithm>
#include <set>

#include "import/fold.h"
#include "import/infer.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int64_t kOldestOpset = 7, kNewestOpset = 26;
// Limit how many numbers nodes and rules may compute: kMaxFoldedNumbers plus kCopies times the
// numbers in the file. A small file can otherwise ask for large constants and many operations.
constexpr uint64_t kMaxFoldedNumbers = uint64_t{1} << 27, kCopies = 8;

// Throws kData for the model as a whole.
[[noreturn]] void RefuseModel(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kData, {path}, EscapeControl(why));
}

// Returns the shape of an input: the shape that the user gives, or else the model's. `batch`
// replaces a free size in the model if it is the first one or its name contains "batch". Throws
// kUsage if another size is free.
Dims InputDims(const std::string& path, const onnx::ValueInfoProto& input,
               const OnnxImportOptions& options) {
  auto given = options.shapes.find(input.name());
  if (given == options.shapes.end()) given = options.shapes.find("");
  const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
  const int64_t batch = options.batch.value_or(1);
  Dims dims;
  for (const auto& dim : shape.dim()) {
    const bool is_batch = LowerCase(dim.dim_param()).find("batch") != std::string::npos;
    dims.push_back(dim.has_dim_value() ? dim.dim_value() : is_batch ? batch : -1);
  }
  if (!dims.empty() && dims[0] <= 0) dims[0] = batch;
  if (!dims.empty() && options.batch && dims[0] != batch) {
    throw Error(ErrorCode::kUsage, {path},
                EscapeControl(Join("--batch=", batch, ": the model fixes the shape of its input '",
                                   input.name(), "' to ", DimsText(dims),
                                   "; leave --batch out, or write the model with a free first "
                                   "size")));
  }
  if (given != options.shapes.end()) {
    const size_t wanted = dims.size() - std::min<size_t>(dims.size(), 1);
    if (input.type().tensor_type().has_shape() && given->second.size() != wanted) {
      std::string sizes = DimsText(given->second);
      std::ranges::replace(sizes, 'x', ',');
      throw Error(
          ErrorCode::kUsage, {path},
          EscapeControl(Join("--shape=", sizes, " has ", Counted(given->second.size(), "number"),
                             ", but an item of the model's input '", input.name(), "' has ", wanted,
                             ": the shape of the input is ", DimsText(dims))));
    }
    dims.resize(1, batch);
    dims.insert(dims.end(), given->second.begin(), given->second.end());
  }
  const bool is_free = !input.type().tensor_type().has_shape() && given == options.shapes.end();
  if (is_free || std::ranges::any_of(dims, [](int64_t dim) { return dim <= 0; })) {
    throw Error(ErrorCode::kUsage, {path},
                EscapeControl(Join("the model leaves the size of its input '", input.name(),
                                   "' free; give the shape of one item, such as "
                                   "--shape=3,224,224")));
  }
  if (!AreValidDims(dims)) {
    RefuseModel(path, Join("input '", input.name(), "' has the shape ", DimsText(dims),
                           ", which is too large"));
  }
  return dims;
}

}  // namespace

int64_t ImportNode::Int(const std::string& attribute, int64_t standard) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() || found->second.ints.empty() ? standard : found->second.ints[0];
}
float ImportNode::Float(const std::string& attribute, float standard) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() || found->second.floats.empty() ? standard
                                                                   : found->second.floats[0];
}
std::string ImportNode::Text(const std::string& attribute, const std::string& standard) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? standard : found->second.text;
}
Dims ImportNode::Ints(const std::string& attribute) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? Dims() : found->second.ints;
}
std::vector<float> ImportNode::Floats(const std::string& attribute) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? std::vector<float>() : found->second.floats;
}
void ImportNode::SetInts(const std::string& attribute, Dims values) {
  attributes[attribute] = {};
  attributes[attribute].ints = std::move(values);
}
void ImportNode::SetFloat(const std::string& attribute, float value) {
  attributes[attribute] = {};
  attributes[attribute].floats = {value};
}

ImportGraph::ImportGraph(const onnx::ModelProto& model, const std::string& path,
                         const OnnxImportOptions& options)
    : path_(path) {
  ReadOpset(model);
  const onnx::GraphProto& graph = model.graph();
  ReadInitializers(graph);
  ReadInputs(graph, options);
  nodes_.reserve(static_cast<size_t>(graph.node_size()));
  for (const onnx::NodeProto& proto : graph.node()) ReadNode(proto);
  ReadOutputs(graph);
}

void ImportGraph::ReadOpset(const onnx::ModelProto& model) {
  for (const auto& entry : model.opset_import()) {
    if (entry.domain().empty() || entry.domain() == "ai.onnx") opset_ = entry.version();
  }
  if (opset_ < kOldestOpset || opset_ > kNewestOpset) {
    RefuseModel(path_, Join("the model uses version ", opset_, " of the operators (opset); ",
                            kOldestOpset, " to ", kNewestOpset,
                            " can be imported: convert it with onnx.version_converter, or export "
                            "it again"));
  }
  if (model.functions_size() > 0) {
    RefuseModel(path_, Join("the model defines the operator '", model.functions(0).name(),
                            "' itself; replace such operators by their nodes first: "
                            "onnx.inliner.inline_local_functions(model)"));
  }
  if (model.graph().sparse_initializer_size() > 0) {
    RefuseModel(path_, Join("constant '", model.graph().sparse_initializer(0).values().name(),
                            "' is sparse; save the model with dense constants"));
  }
}

int ImportGraph::NewValue(const std::string& name) {
  if (names_.contains(name)) {
    RefuseModel(path_, Join("two nodes, constants or inputs have the name '", name,
                            "'; the file is damaged"));
  }
  values_.emplace_back();
  values_.back().name = name;
  return names_[name] = static_cast<int>(values_.size()) - 1;
}

void ImportGraph::SetConstant(int value, Constant constant) {
  ImportValue& to = values_[static_cast<size_t>(value)];
  to.dims = constant.dims;
  to.has_dims = true;
  to.constant = &constants_.emplace_back(std::move(constant));
}

void ImportGraph::ReadInitializers(const onnx::GraphProto& graph) {
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    const std::string what = EscapeControl(Join("constant '", tensor.name(), "'"));
    Constant constant = ReadTensor(tensor, path_, what);
    stored_ += constant.Count();
    SetConstant(NewValue(tensor.name()), std::move(constant));
  }
}

void ImportGraph::ReadInputs(const onnx::GraphProto& graph, const OnnxImportOptions& options) {
  std::set<std::string> names;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (names_.contains(input.name()) && names.insert(input.name()).second) continue;
    ImportValue value;
    value.dims = InputDims(path_, input, options);
    const int index = NewValue(input.name());
    value.name = input.name();
    value.has_dims = true;
    values_[static_cast<size_t>(index)] = value;
    inputs_.push_back(index);
  }
}

void ImportGraph::ReadAttribute(const onnx::AttributeProto& proto, ImportNode* node) {
  if (proto.has_g() || proto.graphs_size() > 0) {
    Refuse(*node,
           "the node contains a graph, which is a loop or a branch; a net has neither: export the "
           "model by tracing it");
  }
  ImportAttribute attribute;
  attribute.ints.assign(proto.ints().begin(), proto.ints().end());
  attribute.floats.assign(proto.floats().begin(), proto.floats().end());
  if (proto.has_i()) attribute.ints = {proto.i()};
  if (proto.has_f()) attribute.floats = {proto.f()};
  // Protobuf omits a scalar that is 0 from the message.
  if (proto.type() == onnx::AttributeProto::INT && !proto.has_i()) attribute.ints = {0};
  if (proto.type() == onnx::AttributeProto::FLOAT && !proto.has_f()) attribute.floats = {0};
  attribute.text = proto.s();
  for (const std::string& part : proto.strings()) {
    attribute.text += Join(attribute.text.empty() ? "" : ",", part);
  }
  if (proto.has_t()) {
    const std::string what = EscapeControl(
        Join("attribute '", proto.name(), "' of node '", node->name, "' (", node->op, ")"));
    attribute.tensor = &constants_.emplace_back(ReadTensor(proto.t(), path_, what));
    stored_ += attribute.tensor->Count();
  }
  node->attributes[proto.name()] = std::move(attribute);
}

void ImportGraph::ReadNode(const onnx::NodeProto& proto) {
  ImportNode node;
  node.op = proto.op_type();
  node.name = proto.name();
  node.index = nodes_read_++;
  if (!proto.domain().empty() && proto.domain() != "ai.onnx") {
    Refuse(node, Join("operator of the domain '", proto.domain(),
                      "', which is not part of ONNX; export the model with standard operators"));
  }
  for (const onnx::AttributeProto& attribute : proto.attribute()) ReadAttribute(attribute, &node);
  for (const std::string& name : proto.input()) {
    const auto found = names_.find(name);
    if (!name.empty() && found == names_.end()) {
      Refuse(node, Join("no node before it computes its input '", name, "'; the file is damaged"));
    }
    node.inputs.push_back(name.empty() ? -1 : found->second);
    if (!name.empty() && !value(found->second).has_dims) {
      Refuse(node, Join("its input '", name, "' is an output that no layer gives"));
    }
  }
  std::vector<const Constant*> constants;
  bool all_known = true;
  for (const int input : node.inputs) {
    constants.push_back(ConstantOf(input));
    all_known = all_known && (input < 0 || constants.back() != nullptr);
  }
  for (const std::string& name : proto.output()) {
    // The first output always has a value, so that rules need not check for it.
    const bool leaves_out = name.empty() && !node.outputs.empty();
    node.outputs.push_back(leaves_out ? -1 : name.empty() ? AddValue("", {}) : NewValue(name));
  }
  if (node.op == "Shape" || node.op == "Size") all_known = true;
  if (all_known) {
    std::optional<std::vector<Constant>> results = FoldNode(*this, node, constants);
    if (!results) {
      Refuse(node, node.inputs.empty()
                       ? "the operator cannot be imported"
                       : "all of its inputs are constants, and it cannot be computed beforehand; "
                         "simplify the model first, e.g. with onnxsim or onnxscript.optimizer");
    }
    if (node.op.starts_with("Reduce")) CountFolded(node, constants[0]->Count());
    for (const Constant& result : *results) CountFolded(node, result.Count());
    for (size_t i = 0; i < std::min(results->size(), node.outputs.size()); ++i) {
      if (node.outputs[i] >= 0) SetConstant(node.outputs[i], std::move((*results)[i]));
    }
    return;
  }
  InferDims(*this, node);
  AddNode(std::move(node));
}

void ImportGraph::CountFolded(const ImportNode& node, uint64_t numbers) {
  folded_ += numbers;
  if (folded_ > kMaxFoldedNumbers + kCopies * stored_) {
    Refuse(node, "the constants of the model are too large");
  }
}

bool ImportGraph::CountTraced(uint64_t numbers) {
  constexpr uint64_t kMaxTraced = uint64_t{1} << 33;  // about a minute
  traced_ += numbers;
  return traced_ <= kMaxTraced;
}

void ImportGraph::ReadOutputs(const onnx::GraphProto& graph) {
  for (const onnx::ValueInfoProto& output : graph.output()) {
    const auto found = names_.find(output.name());
    if (found == names_.end()) {
      RefuseModel(path_,
                  Join("no node computes the output '", output.name(), "'; the file is damaged"));
    }
    values_[static_cast<size_t>(found->second)].is_output = true;
    outputs_.push_back(found->second);
  }
  if (outputs_.empty()) RefuseModel(path_, "the model has no outputs, so it is not a net");
  Sort();
}

void ImportGraph::Refuse(const ImportNode& node, const std::string& why) const {
  const std::string name =
      node.name.empty() ? Join("node ", node.index) : Join("node '", node.name, "'");
  throw Error(ErrorCode::kData, {path_}, EscapeControl(Join(name, " (", node.op, "): ", why)));
}

void ImportGraph::SetDims(const ImportNode& node, size_t output, Dims dims) {
  if (!AreValidDims(dims) || std::ranges::count(dims, 0) > 0) {
    Refuse(node, Join("its output would have the shape ", DimsText(dims),
                      ", which is not possible: its inputs do not fit its attributes"));
  }
  if (output >= node.outputs.size() || node.outputs[output] < 0) return;
  ImportValue& value = values_[static_cast<size_t>(node.outputs[output])];
  value.dims = std::move(dims);
  value.has_dims = true;
}

std::optional<float> ImportGraph::NumberOf(int value) const {
  const Constant* const constant = ConstantOf(value);
  if (constant == nullptr || constant->Count() != 1) return std::nullopt;
  return static_cast<float>(constant->At(0));
}

}  // namespace trainer
