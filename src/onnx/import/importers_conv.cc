#include <algorithm>

#include "import/importers.h"
#include "import/layer_helpers.h"
#include "import/window.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Holds a weight whose kernel is enlarged by zeros, so that equal padding at both ends has the
// effect of unequal padding.
struct PaddedKernel {
  Dims dims;
  std::vector<float> values;
  Dims pad;
};

// Enlarges the kernel by p - begin zeros before it and p - end zeros after it. Padding of p at both
// ends then has the effect of padding of begin and end.
PaddedKernel MakeSymmetric(const NetBuilder& net, const ImportNode& node,
                           const ImportWindow& window, const Constant& weight) {
  PaddedKernel padded;
  padded.dims = weight.dims;
  Dims before(weight.dims.size(), 0);
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int64_t begin = window.pad_begin[i], end = window.pad_end[i];
    const int64_t pad = std::max({begin, end, int64_t{0}}), step = window.dilation[i];
    if ((pad - begin) % step != 0 || (pad - end) % step != 0) {
      net.graph().Refuse(node,
                         Join("padding of ", begin, " and ", end, " with a dilation of ", step,
                              " has no counterpart in a layer, which pads both ends "
                              "alike"));
    }
    padded.pad.push_back(pad);
    before[i + 2] = (pad - begin) / step;
    padded.dims[i + 2] += (2 * pad - begin - end) / step;
  }
  padded.values = FloatsOfConstant(weight);
  if (padded.dims == weight.dims) return padded;
  if (!AreValidDims(padded.dims)) net.graph().Refuse(node, "its padding is too large");
  CheckMadeNumbers(net, node, CountOf(padded.dims) - CountOf(weight.dims));
  std::vector<float> values(static_cast<size_t>(CountOf(padded.dims)), 0.0f);
  for (size_t i = 0; i < padded.values.size(); ++i) {
    int64_t at = 0, rest = static_cast<int64_t>(i), step = 1;
    for (size_t k = padded.dims.size(); k-- > 0; rest /= weight.dims[k]) {
      at += (rest % weight.dims[k] + before[k]) * step;
      step *= padded.dims[k];
    }
    values[static_cast<size_t>(at)] = padded.values[i];
  }
  padded.values = std::move(values);
  return padded;
}

// Appends one value if all axes have the same one, else one value per axis; nothing if all have the
// default.
void SetValues(const Dims& values, int64_t standard,
               google::protobuf::RepeatedField<uint32_t>* to) {
  const bool equal = std::ranges::all_of(values, [&](int64_t v) { return v == values[0]; });
  if (equal && values[0] == standard) return;
  for (size_t i = 0; i < (equal ? 1 : values.size()); ++i) {
    to->Add(static_cast<uint32_t>(values[i]));
  }
}

void SetConvolution(const PaddedKernel& kernel, const ImportWindow& window, int64_t outputs,
                    int64_t group, bool bias, caffe::ConvolutionParameter* param) {
  param->set_num_output(static_cast<uint32_t>(outputs));
  if (!bias) param->set_bias_term(false);
  const Dims sizes(kernel.dims.begin() + 2, kernel.dims.end());
  SetValues(sizes, 0, param->mutable_kernel_size());
  SetValues(kernel.pad, 0, param->mutable_pad());
  SetValues(window.stride, 1, param->mutable_stride());
  SetValues(window.dilation, 1, param->mutable_dilation());
  if (group > 1) param->set_group(static_cast<uint32_t>(group));
}

void ImportConv(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  const int x = net.BlobOf(node, 0);
  const Constant& weight = *graph.ConstantOf(node.inputs[1]);
  const Dims out = graph.DimsOf(node.outputs[0]);
  const bool transposed = node.op == "ConvTranspose";
  const Dims sizes(weight.dims.begin() + 2, weight.dims.end());
  const ImportWindow window = transposed ? ReadTransposedWindow(graph, node, net.DimsOf(x), sizes)
                                         : ReadWindow(graph, node, net.DimsOf(x), sizes);
  const PaddedKernel kernel = MakeSymmetric(net, node, window, weight);
  const Constant* const bias = graph.ConstantOf(node.Input(2));
  if (node.Input(2) >= 0 && (bias == nullptr || static_cast<int64_t>(bias->Count()) != out[1])) {
    graph.Refuse(node, "its bias is not a constant with a number for each output channel");
  }
  const NetBuilder::NewLayer added =
      net.Add(node, transposed ? "Deconvolution" : "Convolution", {x}, out);
  SetConvolution(kernel, window, out[1], node.Int("group", 1), bias != nullptr,
                 added.layer->mutable_convolution_param());
  net.AddWeight(node, added, kernel.dims, kernel.values);
  if (bias != nullptr) net.AddWeight(node, added, {out[1]}, FloatsOfConstant(*bias));
  net.SetOutput(node, 0, added.top);
}

}  // namespace

void AddConvImporters(NodeImporters* all) { (*all)["Conv"] = (*all)["ConvTranspose"] = ImportConv; }

}  // namespace trainer
