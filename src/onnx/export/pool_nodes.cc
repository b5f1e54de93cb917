#include "export/pool_nodes.h"

#include <algorithm>

namespace trainer {
namespace {

// Returns the attributes of a pooling with `pad` of each axis as the padding before it.
GraphWriter::Attributes PoolAttributes(const PoolAxis& h, const PoolAxis& w) {
  return {{"kernel_shape", std::vector<int64_t>{h.kernel, w.kernel}},
          {"strides", std::vector<int64_t>{h.stride, w.stride}},
          {"pads", std::vector<int64_t>{h.pad, w.pad, std::max<int64_t>(0, h.EndPad()),
                                        std::max<int64_t>(0, w.EndPad())}}};
}

// Returns the axis after its padding was added to the input as elements.
PoolAxis Padded(PoolAxis axis) {
  axis.in += 2 * axis.pad;
  axis.pad = 0;
  return axis;
}

}  // namespace

std::string AddMaxPool(GraphWriter& graph, const std::string& x, const PoolAxis& h,
                       const PoolAxis& w) {
  return graph.Add("MaxPool", {x}, PoolAttributes(h, w));
}

GraphWriter::Names AddMaxPoolWithPlaces(GraphWriter& graph, const std::string& x, const PoolAxis& h,
                                        const PoolAxis& w) {
  const GraphWriter::Names both = graph.AddMany("MaxPool", {x}, 2, PoolAttributes(h, w));
  const std::string place = graph.Add("Mod", {both[1], graph.Int(h.in * w.in)});
  return {both[0], graph.Cast(place, onnx::TensorProto::FLOAT)};
}

// Caffe's divisor counts the padding, but not the elements beyond the padding. The attribute
// count_include_pad counts either both or neither, so a Pad node adds the padding where windows
// reach beyond it.
std::string AddAveragePool(GraphWriter& graph, const std::string& x, const PoolAxis& h,
                           const PoolAxis& w) {
  const bool goes_beyond = h.EndPad() > h.pad || w.EndPad() > w.pad;
  GraphWriter::Attributes attributes = PoolAttributes(h, w);
  if (!goes_beyond) {
    attributes.push_back({"count_include_pad", 1});
    return graph.Add("AveragePool", {x}, attributes);
  }
  if (h.pad == 0 && w.pad == 0) return graph.Add("AveragePool", {x}, attributes);
  const std::string padded =
      graph.Add("Pad", {x, graph.Ints({0, 0, h.pad, w.pad, 0, 0, h.pad, w.pad})});
  return graph.Add("AveragePool", {padded}, PoolAttributes(Padded(h), Padded(w)));
}

}  // namespace trainer
