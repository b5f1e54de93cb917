#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "onnx.pb.h"

namespace trainer {

// Holds an attribute of a node.
struct OnnxAttribute {
  std::string_view name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, onnx::GraphProto> value;
};

// Adds nodes and constants to a graph, and writes each operator in the form that the opset
// requires. Not thread-safe.
class GraphWriter {
 public:
  using Names = std::vector<std::string>;
  using Attributes = std::vector<OnnxAttribute>;

  // Begins the names of nodes and values with `scope`. `graph` must outlive this object.
  GraphWriter(onnx::GraphProto* graph, int opset, const std::string& scope = "");

  int opset() const { return opset_; }
  // Sets the name of the layer that the next nodes belong to.
  void SetScope(const std::string& scope);
  const std::string& scope() const { return scope_; }

  // Reserves and returns an unused name for a value: `wish`, with a number appended if the graph
  // already has that name.
  std::string NewValue(const std::string& wish);
  // Renames `value` to `name`, and its node to the scope, if a node in the scope computes it and no
  // other value has the name. Returns whether it did.
  bool Rename(const std::string& value, const std::string& name);

  // Adds a node and returns the name of its output, or of its outputs.
  std::string Add(std::string_view op, const Names& inputs, const Attributes& attributes = {});
  Names AddMany(std::string_view op, const Names& inputs, size_t outputs,
                const Attributes& attributes = {});

  // Add constants and return their names. Equal short constants are added once. `name` sets the
  // name of a long constant.
  std::string Floats(std::span<const float> values, const std::vector<int64_t>& dims,
                     const std::string& name = "");
  std::string Float(float value) { return Floats({&value, 1}, {}); }
  std::string Ints(const std::vector<int64_t>& values);  // a tensor with 1 axis
  std::string Int(int64_t value);                        // a scalar
  std::string Bools(const std::vector<bool>& values, const std::vector<int64_t>& dims);

  // Adds ReduceSum, ReduceMean or ReduceMax over `axes`.
  std::string Reduce(std::string_view op, const std::string& x, const std::vector<int64_t>& axes,
                     bool keeps_axes);
  std::string Reshape(const std::string& x, const std::vector<int64_t>& dims);
  std::string Squeeze(const std::string& x, const std::vector<int64_t>& axes);
  std::string Unsqueeze(const std::string& x, const std::vector<int64_t>& axes);
  std::string Transpose(const std::string& x, const std::vector<int64_t>& order);
  // Takes the elements [start, end) of an axis.
  std::string Slice(const std::string& x, int64_t axis, int64_t start, int64_t end);
  Names Split(const std::string& x, int64_t axis, const std::vector<int64_t>& lengths);
  std::string Cast(const std::string& x, onnx::TensorProto::DataType type);
  // Adds the chain x op y op z.
  std::string Chain(std::string_view op, const Names& inputs);
  // Returns x * factor + shift, and omits a factor of 1 and a shift of 0.
  std::string Line(const std::string& x, float factor, float shift);

 private:
  std::string AddTensor(onnx::TensorProto tensor, const std::string& name);

  onnx::GraphProto* graph_;
  int opset_;
  std::string scope_;
  int first_node_ = 0;                        // index of the first node in the scope
  bool is_scope_named_ = false;               // whether a node already has the name of the scope
  std::set<std::string> values_, nodes_;      // names in use
  std::map<std::string, std::string> short_;  // maps the bytes of a short constant to its name
};

}  // namespace trainer
