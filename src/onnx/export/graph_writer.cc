#include "export/graph_writer.h"

#include <cstring>
#include <utility>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kShortBytes = 64;  // constants up to this size are shared

void SetAttribute(const OnnxAttribute& from, onnx::AttributeProto* to) {
  to->set_name(std::string(from.name));
  if (const auto* i = std::get_if<int64_t>(&from.value)) {
    to->set_type(onnx::AttributeProto::INT);
    to->set_i(*i);
  } else if (const auto* f = std::get_if<float>(&from.value)) {
    to->set_type(onnx::AttributeProto::FLOAT);
    to->set_f(*f);
  } else if (const auto* s = std::get_if<std::string>(&from.value)) {
    to->set_type(onnx::AttributeProto::STRING);
    to->set_s(*s);
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&from.value)) {
    to->set_type(onnx::AttributeProto::INTS);
    to->mutable_ints()->Add(ints->begin(), ints->end());
  } else {
    to->set_type(onnx::AttributeProto::GRAPH);
    *to->mutable_g() = std::get<onnx::GraphProto>(from.value);
  }
}

// Returns a tensor of these numbers. The bytes are copied as they are, because ONNX and this
// machine are little-endian.
template <class T>
onnx::TensorProto MakeOnnxTensor(onnx::TensorProto::DataType type, std::span<const T> values,
                                 const std::vector<int64_t>& dims) {
  onnx::TensorProto tensor;
  tensor.set_data_type(type);
  tensor.mutable_dims()->Add(dims.begin(), dims.end());
  tensor.set_raw_data(values.data(), values.size_bytes());
  return tensor;
}

}  // namespace

GraphWriter::GraphWriter(onnx::GraphProto* graph, int opset, const std::string& scope)
    : graph_(graph), opset_(opset), scope_(scope) {}

void GraphWriter::SetScope(const std::string& scope) {
  scope_ = scope;
  first_node_ = graph_->node_size();
  is_scope_named_ = nodes_.contains(scope);
}

std::string GraphWriter::NewValue(const std::string& wish) {
  std::string name = wish;
  for (int i = 1; !values_.insert(name).second; ++i) name = Join(wish, "_", i);
  return name;
}

bool GraphWriter::Rename(const std::string& value, const std::string& name) {
  for (int n = first_node_; n < graph_->node_size(); ++n) {
    onnx::NodeProto& node = *graph_->mutable_node(n);
    for (std::string& output : *node.mutable_output()) {
      if (output != value || !values_.insert(name).second) continue;
      values_.erase(value);
      output = name;
      for (int later = n + 1; later < graph_->node_size(); ++later) {
        for (std::string& input : *graph_->mutable_node(later)->mutable_input()) {
          if (input == value) input = name;
        }
      }
      if (!std::exchange(is_scope_named_, true)) {
        nodes_.insert(scope_);
        node.set_name(scope_);
      }
      return true;
    }
  }
  return false;
}

GraphWriter::Names GraphWriter::AddMany(std::string_view op, const Names& inputs, size_t outputs,
                                        const Attributes& attributes) {
  onnx::NodeProto& node = *graph_->add_node();
  node.set_op_type(std::string(op));
  std::string name = Join(scope_, "/", op);
  for (int i = 1; !nodes_.insert(name).second; ++i) name = Join(scope_, "/", op, "_", i);
  node.set_name(name);
  node.mutable_input()->Add(inputs.begin(), inputs.end());
  for (const OnnxAttribute& attribute : attributes) {
    SetAttribute(attribute, node.add_attribute());
  }
  Names names;
  for (size_t i = 0; i < outputs; ++i) {
    names.push_back(NewValue(outputs == 1 ? name : Join(name, ":", i)));
    node.add_output(names.back());
  }
  return names;
}

std::string GraphWriter::Add(std::string_view op, const Names& inputs,
                             const Attributes& attributes) {
  return AddMany(op, inputs, 1, attributes)[0];
}

std::string GraphWriter::AddTensor(onnx::TensorProto tensor, const std::string& name) {
  const bool is_short = name.empty() && tensor.raw_data().size() <= kShortBytes;
  const std::string key = is_short ? tensor.SerializeAsString() : "";
  if (is_short && short_.contains(key)) return short_.at(key);
  const std::string value = NewValue(name.empty() ? Join(scope_, "/const") : name);
  if (is_short) short_[key] = value;
  tensor.set_name(value);
  *graph_->add_initializer() = std::move(tensor);
  return value;
}

std::string GraphWriter::Floats(std::span<const float> values, const std::vector<int64_t>& dims,
                                const std::string& name) {
  return AddTensor(MakeOnnxTensor(onnx::TensorProto::FLOAT, values, dims), name);
}

std::string GraphWriter::Ints(const std::vector<int64_t>& values) {
  return AddTensor(MakeOnnxTensor(onnx::TensorProto::INT64, std::span<const int64_t>(values),
                                  {static_cast<int64_t>(values.size())}),
                   "");
}

std::string GraphWriter::Int(int64_t value) {
  return AddTensor(
      MakeOnnxTensor(onnx::TensorProto::INT64, std::span<const int64_t>(&value, 1), {}), "");
}

std::string GraphWriter::Bools(const std::vector<bool>& values, const std::vector<int64_t>& dims) {
  const std::string bytes(values.begin(), values.end());
  return AddTensor(MakeOnnxTensor(onnx::TensorProto::BOOL, std::span<const char>(bytes), dims), "");
}

std::string GraphWriter::Reduce(std::string_view op, const std::string& x,
                                const std::vector<int64_t>& axes, bool keeps_axes) {
  // ReduceSum reads the axes as an input since opset 13, and the other reductions do since opset
  // 18.
  if (op == "ReduceSum" || opset_ >= 18) {
    return Add(op, {x, Ints(axes)}, {{"keepdims", keeps_axes ? 1 : 0}});
  }
  return Add(op, {x}, {{"axes", axes}, {"keepdims", keeps_axes ? 1 : 0}});
}

std::string GraphWriter::Reshape(const std::string& x, const std::vector<int64_t>& dims) {
  return Add("Reshape", {x, Ints(dims)});
}

std::string GraphWriter::Squeeze(const std::string& x, const std::vector<int64_t>& axes) {
  return Add("Squeeze", {x, Ints(axes)});
}

std::string GraphWriter::Unsqueeze(const std::string& x, const std::vector<int64_t>& axes) {
  return axes.empty() ? x : Add("Unsqueeze", {x, Ints(axes)});
}

std::string GraphWriter::Transpose(const std::string& x, const std::vector<int64_t>& order) {
  return Add("Transpose", {x}, {{"perm", order}});
}

std::string GraphWriter::Slice(const std::string& x, int64_t axis, int64_t start, int64_t end) {
  return Add("Slice", {x, Ints({start}), Ints({end}), Ints({axis})});
}

GraphWriter::Names GraphWriter::Split(const std::string& x, int64_t axis,
                                      const std::vector<int64_t>& lengths) {
  return AddMany("Split", {x, Ints(lengths)}, lengths.size(), {{"axis", axis}});
}

std::string GraphWriter::Cast(const std::string& x, onnx::TensorProto::DataType type) {
  return Add("Cast", {x}, {{"to", static_cast<int64_t>(type)}});
}

std::string GraphWriter::Chain(std::string_view op, const Names& inputs) {
  std::string value = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) value = Add(op, {value, inputs[i]});
  return value;
}

std::string GraphWriter::Line(const std::string& x, float factor, float shift) {
  const std::string scaled = factor == 1 ? x : Add("Mul", {x, Float(factor)});
  return shift == 0 ? scaled : Add("Add", {scaled, Float(shift)});
}

}  // namespace trainer
