// Exports Convolution, Deconvolution, Im2col and InnerProduct.

#include <numeric>
#include <utility>

#include "export/layer_export.h"

namespace trainer {
namespace {

using Ints64 = std::vector<int64_t>;

// Holds the fields of convolution_param that Conv has as attributes, and the shapes before and
// after it. The axes before the channels are merged into one, and a net without spatial axes gets
// one.
struct ConvCall {
  int axis = 1;
  bool adds_axis = false;
  Ints64 kernel, strides, pads, dilations;
  int64_t group = 1;

  GraphWriter::Attributes Attributes() const {
    return {{"kernel_shape", kernel},
            {"strides", strides},
            {"pads", pads},
            {"dilations", dilations},
            {"group", group}};
  }
};

// Returns one size per spatial axis. The layer gives the sizes in the _h and _w fields, as one
// value for all axes, or as one value per axis.
Ints64 ConvSizes(const google::protobuf::RepeatedField<uint32_t>& values, bool has_pair, uint32_t h,
                 uint32_t w, size_t axes, int64_t standard) {
  if (has_pair) return {h, w};
  if (values.empty()) return Ints64(axes, standard);
  if (values.size() == 1) return Ints64(axes, values[0]);
  return {values.begin(), values.end()};
}

ConvCall ReadConvCall(const LayerExport& layer) {
  const caffe::ConvolutionParameter& p = layer.proto().convolution_param();
  ConvCall call;
  call.axis = layer.InShape().Axis(p.axis());
  const auto axes = static_cast<size_t>(layer.InShape().Rank() - call.axis - 1);
  call.adds_axis = axes == 0;
  if (call.adds_axis) {
    call.kernel = call.strides = call.dilations = {1};
    call.pads = {0, 0};
  } else {
    call.kernel = ConvSizes(p.kernel_size(), p.has_kernel_h() || p.has_kernel_w(), p.kernel_h(),
                            p.kernel_w(), axes, 1);
    call.strides = ConvSizes(p.stride(), p.has_stride_h() || p.has_stride_w(), p.stride_h(),
                             p.stride_w(), axes, 1);
    call.dilations = ConvSizes(p.dilation(), false, 0, 0, axes, 1);
    call.pads = ConvSizes(p.pad(), p.has_pad_h() || p.has_pad_w(), p.pad_h(), p.pad_w(), axes, 0);
    call.pads.insert(call.pads.end(), call.pads.begin(),
                     call.pads.begin() + static_cast<std::ptrdiff_t>(axes));
  }
  const std::string& type = layer.spec().type();
  const bool depthwise = type == "ConvolutionDepthwise" || type == "DepthwiseConvolution";
  call.group = depthwise ? layer.InShape()[call.axis] : p.group();
  return call;
}

// Adds `op` for each input of the layer. Returns the values in the shapes of the outputs.
void AddConvCalls(const LayerExport& layer, const ConvCall& call, std::string_view op,
                  const GraphWriter::Names& constants) {
  GraphWriter& graph = layer.graph();
  for (int i = 0; i < layer.NumInputs(); ++i) {
    std::string x = layer.In(i);
    const FreeShape& in = layer.InShape(i);
    const FreeShape& out = layer.OutShape(i);
    const bool merges = call.axis != 1;
    if (merges) x = layer.Reshape(x, in, in.Merged(0, call.axis));
    if (call.adds_axis) x = graph.Unsqueeze(x, {2});
    GraphWriter::Names inputs = {x};
    inputs.insert(inputs.end(), constants.begin(), constants.end());
    std::string y = graph.Add(op, inputs, call.Attributes());
    if (call.adds_axis) y = graph.Squeeze(y, {2});
    if (merges) y = layer.Reshape(y, out.Merged(0, call.axis), out);
    layer.Set(i, y);
  }
}

// Adds the constants weight and bias and returns their names. Folded layers multiply output
// channels, so `channel_of` maps the index of a weight to its output channel.
template <class F>
GraphWriter::Names WeightAndBias(const LayerExport& layer, int64_t channels, Ints64 dims,
                                 F channel_of) {
  const std::optional<ChannelAffine> folded = layer.FoldedLayers();
  const bool has_bias = layer.NumParams() > 1;
  if (!folded && dims == layer.ParamDims(0)) {
    GraphWriter::Names names = {layer.Param(0, "weight")};
    if (has_bias) names.push_back(layer.Param(1, "bias"));
    return names;
  }
  FloatArray weight = layer.ReadParam(0);
  weight.dims = std::move(dims);
  FloatArray bias{{channels}, std::vector<float>(static_cast<size_t>(channels))};
  if (has_bias) bias = layer.ReadParam(1);
  if (folded) {
    for (size_t i = 0; i < weight.values.size(); ++i) {
      const double factor = folded->factor[static_cast<size_t>(channel_of(i))];
      weight.values[i] = static_cast<float>(weight.values[i] * factor);
    }
    for (size_t c = 0; c < bias.values.size(); ++c) {
      bias.values[c] = static_cast<float>(bias.values[c] * folded->factor[c] + folded->shift[c]);
    }
  }
  GraphWriter::Names names = {layer.Constant(weight, "weight")};
  if (has_bias || folded) names.push_back(layer.Constant(bias, "bias"));
  return names;
}

void ExportConvolution(const LayerExport& layer) {
  const ConvCall call = ReadConvCall(layer);
  Ints64 dims = layer.ParamDims(0);  // (outputs, inputs / group, kernel...)
  if (call.adds_axis) dims.push_back(1);
  const int64_t outputs = dims[0];
  const int64_t per_output =
      std::accumulate(dims.begin() + 1, dims.end(), int64_t{1}, std::multiplies<>());
  AddConvCalls(layer, call, "Conv", WeightAndBias(layer, outputs, dims, [&](size_t i) {
                 return static_cast<int64_t>(i) / per_output;
               }));
}

void ExportDeconvolution(const LayerExport& layer) {
  const ConvCall call = ReadConvCall(layer);
  Ints64 dims = layer.ParamDims(0);  // (inputs, outputs / group, kernel...)
  if (call.adds_axis) dims.push_back(1);
  const int64_t kernel =
      std::accumulate(dims.begin() + 2, dims.end(), int64_t{1}, std::multiplies<>());
  const int64_t in_group = dims[0] / call.group, out_group = dims[1];
  AddConvCalls(layer, call, "ConvTranspose",
               WeightAndBias(layer, out_group * call.group, dims, [&](size_t i) {
                 const int64_t plane = static_cast<int64_t>(i) / kernel;
                 return plane / out_group / in_group * out_group + plane % out_group;
               }));
}

// Writes Im2col as a convolution whose output channel c * size + k copies element k of channel c.
void ExportIm2col(const LayerExport& layer) {
  ConvCall call = ReadConvCall(layer);
  const int64_t channels = layer.InShape()[call.axis];
  const int64_t size =
      std::accumulate(call.kernel.begin(), call.kernel.end(), int64_t{1}, std::multiplies<>());
  FloatArray weight{{channels * size, 1}, {}};
  weight.dims.insert(weight.dims.end(), call.kernel.begin(), call.kernel.end());
  weight.values.assign(static_cast<size_t>(channels * size * size), 0.0f);
  for (int64_t i = 0; i < channels * size; ++i) {
    weight.values[static_cast<size_t>(i * size + i % size)] = 1;
  }
  call.group = channels;
  AddConvCalls(layer, call, "Conv", {layer.Constant(weight, "weight")});
}

// Returns the transposed matrix.
FloatArray TransposedMatrix(const FloatArray& from) {
  FloatArray to{{from.dims[1], from.dims[0]}, std::vector<float>(from.values.size())};
  const auto rows = static_cast<size_t>(from.dims[0]), columns = static_cast<size_t>(from.dims[1]);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) to.values[c * rows + r] = from.values[r * columns + c];
  }
  return to;
}

// Writes a Gemm for inputs (N, K), and a MatMul along the last axis for other shapes.
void ExportInnerProduct(const LayerExport& layer) {
  const caffe::InnerProductParameter& p = layer.proto().inner_product_param();
  GraphWriter& graph = layer.graph();
  const FreeShape& in = layer.InShape();
  const int axis = in.Axis(p.axis());
  const FreeShape rows = in.Merged(axis, in.Rank());
  std::string x = layer.In();
  const int64_t outputs = p.num_output(), inputs = in.Count(axis, in.Rank());
  if (axis == 1) {
    if (in.Rank() > 2) x = graph.Add("Flatten", {x}, {{"axis", 1}});
    GraphWriter::Names names = {x};
    const GraphWriter::Names constants =
        WeightAndBias(layer, outputs, layer.ParamDims(0), [&](size_t i) {
          const auto at = static_cast<int64_t>(i);
          return p.transpose() ? at % outputs : at / inputs;
        });
    names.insert(names.end(), constants.begin(), constants.end());
    layer.Set(0, graph.Add("Gemm", names, {{"transB", p.transpose() ? 0 : 1}}));
    return;
  }
  if (axis != in.Rank() - 1) x = layer.Reshape(x, in, rows);
  const std::string weight = p.transpose()
                                 ? layer.Param(0, "weight")
                                 : layer.Constant(TransposedMatrix(layer.ReadParam(0)), "weight");
  std::string y = graph.Add("MatMul", {x, weight});
  if (layer.NumParams() > 1) y = graph.Add("Add", {y, layer.Param(1, "bias")});
  layer.Set(0, y);
}

const RegisterExport kExportConvolution({"Convolution", "ConvolutionDepthwise",
                                         "DepthwiseConvolution"},
                                        {ExportConvolution});
const RegisterExport kExportDeconvolution({"Deconvolution"}, {ExportDeconvolution});
const RegisterExport kExportIm2col({"Im2col"}, {ExportIm2col});
const RegisterExport kExportInnerProduct({"InnerProduct"}, {ExportInnerProduct});

}  // namespace
}  // namespace trainer
