#pragma once
// How a layer becomes nodes of an ONNX graph: a function per layer type, registered by its file.

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/graph_writer.h"
#include "trainer/config/layer_spec.h"
#include "trainer/net/graph.h"
#include "trainer/tensor/shape.h"

namespace trainer {

class NetExport;

// The shape of a value in the net as it is compiled, and the axes whose length is free in the file.
struct FreeShape {
  std::vector<int64_t> dims;
  std::vector<bool> free;

  int Rank() const { return static_cast<int>(dims.size()); }
  int64_t operator[](int axis) const { return dims[static_cast<size_t>(axis)]; }
  bool IsFree(int axis) const { return free[static_cast<size_t>(axis)]; }
  int64_t NumFree() const { return std::ranges::count(free, true); }
  // Returns the product of the lengths of axes [from, to).
  int64_t Count(int from, int to) const;
  // Converts an axis that may be negative to [0, rank).
  int Axis(int axis) const { return axis < 0 ? axis + Rank() : axis; }
  // Returns this shape with axes [from, to) replaced by one of their product, which is free if one
  // of them is.
  FreeShape Merged(int from, int to) const;
};

// Numbers of a constant in row-major order.
struct FloatArray {
  std::vector<int64_t> dims;
  std::vector<float> values;
};

// y = x * factor + shift, per channel.
struct ChannelAffine {
  std::vector<double> factor, shift;
};

// One layer of the net, as its exporter sees it. Inputs and outputs count from 0 in prototxt order.
class LayerExport {
 public:
  LayerExport(NetExport& net, NodeId node) : net_(net), node_(node) {}

  const LayerSpec& spec() const;
  const caffe::LayerParameter& proto() const { return spec().proto(); }
  GraphWriter& graph() const;

  int NumInputs() const;
  int NumOutputs() const;
  // Returns the name of an input's value; a constant is added to the graph first.
  std::string In(int i = 0) const;
  const FreeShape& InShape(int i = 0) const;
  // Returns an input that depends on shapes and parameters only; no value for other inputs.
  std::optional<FloatArray> ConstantIn(int i) const;
  const FreeShape& OutShape(int i = 0) const;

  int NumParams() const;
  // Returns the shape of parameter i in weight files.
  std::vector<int64_t> ParamDims(int i) const;
  // Returns parameter i.
  FloatArray ReadParam(int i) const;
  // Returns the constant that holds parameter i, as it is stored. It is named "<layer>.<role>", and
  // layers that share the parameter share it.
  std::string Param(int i, std::string_view role) const;
  // Adds a constant named "<layer>.<role>".
  std::string Constant(const FloatArray& array, std::string_view role) const;

  // What BatchNorm, Scale and Bias layers do that directly follow this layer and are computed by
  // it; empty if there are none. Set(0) then sets the output of the last of them.
  std::optional<ChannelAffine> FoldedLayers() const;

  // Sets the value of output i, which gets the blob's name if a node of this layer computes it.
  void Set(int i, const std::string& value) const;

  // Reshapes `x` of shape `from` to `to`, which has the same count. Throws kConfig for the layer if
  // the free axes do not allow that.
  std::string Reshape(const std::string& x, const FreeShape& from, const FreeShape& to) const;
  // Returns the length of an axis. Throws kConfig for the layer if it is free.
  int64_t FixedLength(const FreeShape& shape, int axis) const;
  // Returns the length of an axis as a tensor of one number: a constant, or computed if it is free.
  std::string Length(const std::string& x, const FreeShape& shape, int axis) const;

  // Throw kConfig at the layer's line, or at the line of a field: this cannot be exported because
  // of `why`.
  [[noreturn]] void Refuse(const std::string& why) const;
  [[noreturn]] void RefuseIn(std::string_view param, std::string_view field,
                             const std::string& why) const;

 private:
  NetExport& net_;
  NodeId node_;
};

// What the export does with a layer type.
struct ExportRule {
  // Adds the nodes of a layer. For constants, checks only.
  void (*write)(const LayerExport& layer) = nullptr;
  bool is_constant = false;       // its outputs depend on shapes and parameters only
  const char* why_not = nullptr;  // why the type has no place in an inference net; else null
};

// Returns the rules, by type.
const std::map<std::string, ExportRule>& ExportRules();

// Registers the rule of layer types. Usage:
//   const RegisterExport kExportAbs({"AbsVal"}, {ExportAbs});
struct RegisterExport {
  RegisterExport(std::initializer_list<const char*> types, const ExportRule& rule);
};

}  // namespace trainer
