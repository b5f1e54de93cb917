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

// An attribute; one of the members is used.
struct ImportAttribute {
  std::vector<int64_t> ints;         // of INT and INTS
  std::vector<float> floats;         // of FLOAT and FLOATS
  std::string text;                  // of STRING; of STRINGS with commas
  const Constant* tensor = nullptr;  // of TENSOR; the graph owns it
};

// A node of the model, or one that replaces several of them. Values are indices; -1 stands for an
// optional input that is left out.
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

// A value that flows between nodes.
struct ImportValue {
  std::string name;
  Dims dims;
  bool has_dims = false;               // false for outputs that cannot be imported
  const Constant* constant = nullptr;  // if it is known before the net runs; the graph owns it
  int producer = -1;                   // node; -1: an input or a constant of the model
  std::vector<int> consumers;          // nodes, once per use
  bool is_output = false;
};

// The graph of a model. After construction each value has a shape; what depends on constants only
// is a constant.
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
  // Appends a node that computes `outputs` in place of those that did, and returns its index. The
  // order of the nodes is restored by Sort().
  int AddNode(ImportNode node);
  // Removes the nodes whose results nobody reads any more, and orders the others.
  void Sort();

  // Throws kData: "model.onnx: node 'conv1' (Conv): why".
  [[noreturn]] void Refuse(const ImportNode& node, const std::string& why) const;

  // Counts numbers that are computed beforehand for the node. Throws kData if they are too many for
  // a model of this size, which may be made to exhaust the memory.
  void CountFolded(const ImportNode& node, uint64_t numbers);

  // Counts numbers that a rule follows through the model. Returns false if they became too many, so
  // that a model made for it cannot occupy the importer for hours.
  bool CountTraced(uint64_t numbers);

  // Sets the shape of an output. Throws kData if it is not possible.
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
  std::deque<Constant> constants_;  // of values and attributes; a deque does not move them
  std::vector<int> inputs_, outputs_;
  int nodes_read_ = 0;
  uint64_t stored_ = 0, folded_ = 0;  // numbers of constants in the file, and that nodes compute
  uint64_t traced_ = 0;               // numbers that rules have followed
};

// Returns an axis counted from the front. Throws by graph.Refuse if it is out of range.
int AxisOf(const ImportGraph& graph, const ImportNode& node, int64_t axis, size_t rank);
// Returns the integers that an attribute or, in later versions of the operator, a constant input
// gives; nothing if neither is there. Throws by graph.Refuse if the input is not a constant.
std::optional<Dims> IntsOf(const ImportGraph& graph, const ImportNode& node,
                           const std::string& attribute, size_t input);

}  // namespace trainer
