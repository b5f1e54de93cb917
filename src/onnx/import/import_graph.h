#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "import/constant.h"
#include "trainer/onnx/import_onnx.h"

namespace trainer {

// Holds an attribute in one of its members.
struct ImportAttribute {
  std::vector<int64_t> ints;         // for INT and INTS
  std::vector<float> floats;         // for FLOAT and FLOATS
  std::string text;                  // for STRING; for STRINGS, joined by commas
  const Constant* tensor = nullptr;  // for TENSOR; the graph owns it
};

// Holds a node of the model, or one that replaces several nodes. Values are indices, where -1 means
// an optional input that is left out.
struct ImportNode {
  std::string op, name;
  std::vector<int> inputs, outputs;
  std::map<std::string, ImportAttribute> attributes;
  int index = 0;  // position in the file; for a node that replaces several, the last position

  bool Has(const std::string& attribute) const { return attributes.contains(attribute); }
  int64_t Int(const std::string& attribute, int64_t standard) const;
  float Float(const std::string& attribute, float standard) const;
  std::string Text(const std::string& attribute, const std::string& standard) const;
  // Returns the list of an attribute; empty if it is not given.
  Dims Ints(const std::string& attribute) const;
  std::vector<float> Floats(const std::string& attribute) const;
  void SetInts(const std::string& attribute, Dims values);
  void SetFloat(const std::string& attribute, float value);

  // Returns an input, or -1 if it is left out.
  int Input(size_t i) const { return i < inputs.size() ? inputs[i] : -1; }
};

// Holds a value that nodes write and read.
struct ImportValue {
  std::string name;
  Dims dims;
  bool has_dims = false;               // false for outputs that cannot be imported
  const Constant* constant = nullptr;  // set if known before the net runs; the graph owns it
  int producer = -1;                   // index of a node; -1 for an input or a constant
  std::vector<int> consumers;          // indices of nodes, once per use
  bool is_output = false;
};

// Holds the graph of a model. After construction, each value has a shape, and each value that
// depends on constants only is a constant.
class ImportGraph {
 public:
  // Throws as ImportOnnx does.
  ImportGraph(const onnx::ModelProto& model, const std::string& path,
              const OnnxImportOptions& options);

  const std::string& path() const { return path_; }
  int64_t opset() const { return opset_; }
  std::vector<ImportNode>& nodes() { return nodes_; }
  const std::vector<ImportNode>& nodes() const { return nodes_; }
  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<int>& outputs() const { return outputs_; }
  const ImportValue& value(int index) const { return values_[static_cast<size_t>(index)]; }
  ImportNode& node(int index) { return nodes_[static_cast<size_t>(index)]; }

  const Dims& DimsOf(int value) const { return this->value(value).dims; }
  // Returns the constant; null if the value is not one or is left out.
  const Constant* ConstantOf(int value) const {
    return value < 0 ? nullptr : this->value(value).constant;
  }
  // Returns the number if the value is a constant of one element.
  std::optional<float> NumberOf(int value) const;
  // Returns the node that computes the value; null for an input or a constant.
  ImportNode* ProducerOf(int value);
  // Returns the only node that reads the value; null if several do, or if it is an output.
  ImportNode* SoleConsumerOf(int value);

  // Returns whether the node has this output and something reads it.
  bool IsUsed(const ImportNode& node, size_t output) const;

  // Adds a constant that a rule computes for `node`. Throws as CountFolded does.
  int AddConstant(const ImportNode& node, Constant constant);
  // Adds a value of this shape that no node computes yet.
  int AddValue(const std::string& name, const Dims& dims);
  // Appends a node that computes `outputs` in place of the nodes that computed them, and returns
  // its index. Call Sort() afterwards to restore the order.
  int AddNode(ImportNode node);
  // Removes the nodes whose results are unused, and sorts the others.
  void Sort();

  // Throws kData with a message such as "model.onnx: node 'conv1' (Conv): why".
  [[noreturn]] void Refuse(const ImportNode& node, const std::string& why) const;

  // Counts numbers that are computed for the node before the net runs. Throws kData if they are too
  // many for a model of this size, because a hostile model could exhaust the memory.
  void CountFolded(const ImportNode& node, uint64_t numbers);

  // Counts numbers that a rule follows through the model. Returns false once they are too many, so
  // that a hostile model cannot keep the importer busy for hours.
  bool CountTraced(uint64_t numbers);

  // Sets the shape of an output. Throws kData if the shape is not possible.
  void SetDims(const ImportNode& node, size_t output, Dims dims);
  void SetConstant(int value, Constant constant);

 private:
  void ReadOpset(const onnx::ModelProto& model);
  void ReadInitializers(const onnx::GraphProto& graph);
  void ReadInputs(const onnx::GraphProto& graph, const OnnxImportOptions& options);
  void ReadNode(const onnx::NodeProto& proto);
  void ReadAttribute(const onnx::AttributeProto& proto, ImportNode* node);
  void ReadOutputs(const onnx::GraphProto& graph);
  int NewValue(const std::string& name);

  std::string path_;
  int64_t opset_ = 0;
  std::vector<ImportNode> nodes_;
  std::vector<ImportValue> values_;
  std::map<std::string, int> names_;
  std::deque<Constant> constants_;  // a deque keeps their addresses
  std::vector<int> inputs_, outputs_;
  int nodes_read_ = 0;
  uint64_t stored_ = 0, folded_ = 0;  // numbers in the file's constants, numbers that nodes compute
  uint64_t traced_ = 0;               // numbers that rules have followed
};

// Returns an axis counted from the front. Throws by graph.Refuse if it is out of range.
int AxisOf(const ImportGraph& graph, const ImportNode& node, int64_t axis, size_t rank);
// Returns integers that an attribute gives or, in later versions of the operator, a constant input.
// Returns nothing if both are missing. Throws by graph.Refuse if the input is not a constant.
std::optional<Dims> IntsOf(const ImportGraph& graph, const ImportNode& node,
                           const std::string& attribute, size_t input);

}  // namespace trainer
