#pragma once
// Turns layers into nodes of an ONNX graph. Each layer type has a function, which its file
// registers.

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

// Holds the shape of a value in the net as compiled, and says which axes are free in the file.
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
  // Returns this shape with the axes [from, to) merged into one, which is free if any of them is
  // free.
  FreeShape Merged(int from, int to) const;
};

// Holds the numbers of a constant in row-major order.
struct FloatArray {
  std::vector<int64_t> dims;
  std::vector<float> values;
};

// Describes y = x * factor + shift, per channel.
struct ChannelAffine {
  std::vector<double> factor, shift;
};

// Gives an exporter access to one layer of the net. Inputs and outputs count from 0 in prototxt
// order.
class LayerExport {
 public:
  LayerExport(NetExport& net, NodeId node) : net_(net), node_(node) {}

  const LayerSpec& spec() const;
  const caffe::LayerParameter& proto() const { return spec().proto(); }
  GraphWriter& graph() const;

  int NumInputs() const;
  int NumOutputs() const;
  // Returns the name of an input's value, and adds the value to the graph first if it is a
  // constant.
  std::string In(int i = 0) const;
  const FreeShape& InShape(int i = 0) const;
  // Returns the value of an input that depends on shapes and parameters only, and nothing for other
  // inputs.
  std::optional<FloatArray> ConstantIn(int i) const;
  const FreeShape& OutShape(int i = 0) const;

  int NumParams() const;
  // Returns the shape of parameter i in weight files.
  std::vector<int64_t> ParamDims(int i) const;
  // Returns parameter i.
  FloatArray ReadParam(int i) const;
  // Adds the constant that holds parameter i as stored, and returns its name, "<layer>.<role>".
  // Layers that share the parameter share the constant.
  std::string Param(int i, std::string_view role) const;
  // Adds a constant named "<layer>.<role>".
  std::string Constant(const FloatArray& array, std::string_view role) const;

  // Returns the combined factor and shift of the BatchNorm, Scale and Bias layers that are folded
  // into this layer; nothing if no layer is folded. Set(0) then sets the output of the last folded
  // layer.
  std::optional<ChannelAffine> FoldedLayers() const;

  // Sets the value of output i. The value gets the blob's name if a node of this layer computes it.
  void Set(int i, const std::string& value) const;

  // Reshapes `x` from `from` to `to`, which must have the same count. Throws kConfig for the layer
  // if the free axes make that impossible.
  std::string Reshape(const std::string& x, const FreeShape& from, const FreeShape& to) const;
  // Returns the length of an axis. Throws kConfig for the layer if it is free.
  int64_t FixedLength(const FreeShape& shape, int axis) const;
  // Returns the length of an axis as a tensor with one number: a constant, or a computed value if
  // the axis is free.
  std::string Length(const std::string& x, const FreeShape& shape, int axis) const;

  // Throw kConfig at the layer's line, or at the line of a field, with `why` as the reason.
  [[noreturn]] void Refuse(const std::string& why) const;
  [[noreturn]] void RefuseIn(std::string_view param, std::string_view field,
                             const std::string& why) const;

 private:
  NetExport& net_;
  NodeId node_;
};

// Says how a layer type is exported.
struct ExportRule {
  // Adds the nodes of a layer. For a constant layer, only checks that it can be exported.
  void (*write)(const LayerExport& layer) = nullptr;
  bool is_constant = false;       // its outputs depend on shapes and parameters only
  const char* why_not = nullptr;  // why an inference net cannot have the type; null if it can
};

// Returns the rules by layer type.
const std::map<std::string, ExportRule>& ExportRules();

// Registers the rule of layer types. Usage:
//   const RegisterExport kExportAbs({"AbsVal"}, {ExportAbs});
struct RegisterExport {
  RegisterExport(std::initializer_list<const char*> types, const ExportRule& rule);
};

}  // namespace trainer
