// Exports Pooling and SPP.

#include "export/layer_export.h"
#include "export/pool_nodes.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the windows along axis 2 or 3. The shapes of the net determine how many windows there
// are.
PoolAxis ReadPoolAxis(const LayerExport& layer, int axis) {
  const caffe::PoolingParameter& p = layer.proto().pooling_param();
  PoolAxis windows;
  windows.in = layer.FixedLength(layer.InShape(), axis);
  windows.out = layer.OutShape()[axis];
  if (p.global_pooling()) {
    windows.kernel = windows.in;
    return windows;
  }
  const bool is_h = axis == 2;
  windows.kernel = p.has_kernel_h() ? (is_h ? p.kernel_h() : p.kernel_w()) : p.kernel_size();
  windows.stride = p.has_stride_h() ? (is_h ? p.stride_h() : p.stride_w()) : p.stride();
  windows.pad = p.has_pad_h() ? (is_h ? p.pad_h() : p.pad_w()) : p.pad();
  if (windows.LastWindowHasElements()) return windows;
  layer.RefuseIn("pooling_param", "stride",
                 "the last window has no pixel of the image; use round_mode: FLOOR");
}

// Writes STOCHASTIC pooling as Caffe computes it in phase TEST: sum x^2 / sum x, or 0 if the sum is
// not positive.
std::string AddWeightedPool(GraphWriter& graph, const std::string& x, const PoolAxis& h,
                            const PoolAxis& w) {
  const std::string sum = AddAveragePool(graph, x, h, w);
  const std::string squares = AddAveragePool(graph, graph.Add("Mul", {x, x}), h, w);
  const std::string is_positive = graph.Add("Greater", {sum, graph.Float(0)});
  const std::string divisor = graph.Add("Where", {is_positive, sum, graph.Float(1)});
  return graph.Add("Where", {is_positive, graph.Add("Div", {squares, divisor}), graph.Float(0)});
}

void ExportPooling(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const caffe::PoolingParameter& p = layer.proto().pooling_param();
  const PoolAxis h = ReadPoolAxis(layer, 2), w = ReadPoolAxis(layer, 3);
  const std::string x = layer.In();
  const bool is_max = p.pool() == caffe::PoolingParameter::MAX;
  if (p.pool() == caffe::PoolingParameter::STOCHASTIC) {
    layer.Set(0, AddWeightedPool(graph, x, h, w));
  } else if (layer.NumOutputs() > 1) {
    const GraphWriter::Names both = AddMaxPoolWithPlaces(graph, x, h, w);
    layer.Set(0, both[0]);
    layer.Set(1, both[1]);
  } else if (p.global_pooling()) {
    layer.Set(0, graph.Add(is_max ? "GlobalMaxPool" : "GlobalAveragePool", {x}));
  } else {
    layer.Set(0, is_max ? AddMaxPool(graph, x, h, w) : AddAveragePool(graph, x, h, w));
  }
}

// Returns the windows of a level with `bins` windows along an axis of this length.
PoolAxis SppLevel(int64_t length, int64_t bins) {
  PoolAxis axis;
  axis.in = length;
  axis.kernel = axis.stride = (length + bins - 1) / bins;
  axis.pad = (axis.kernel * bins - length + 1) / 2;
  axis.out = (length + 2 * axis.pad - axis.kernel + axis.stride - 1) / axis.stride + 1;
  if (axis.pad > 0 && (axis.out - 1) * axis.stride >= length + axis.pad) --axis.out;
  return axis;
}

void ExportSpp(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const caffe::SPPParameter& p = layer.proto().spp_param();
  const int64_t height = layer.FixedLength(layer.InShape(), 2);
  const int64_t width = layer.FixedLength(layer.InShape(), 3);
  GraphWriter::Names levels;
  for (uint32_t i = 0; i < p.pyramid_height(); ++i) {
    const int64_t bins = int64_t{1} << i;
    const PoolAxis h = SppLevel(height, bins), w = SppLevel(width, bins);
    const bool is_average = p.pool() == caffe::SPPParameter::AVE;
    levels.push_back(is_average ? AddAveragePool(graph, layer.In(), h, w)
                                : AddMaxPool(graph, layer.In(), h, w));
  }
  if (levels.size() == 1) return layer.Set(0, levels[0]);
  for (std::string& level : levels) level = graph.Add("Flatten", {level}, {{"axis", 1}});
  layer.Set(0, graph.Add("Concat", levels, {{"axis", 1}}));
}

const RegisterExport kExportPooling({"Pooling"}, {ExportPooling});
const RegisterExport kExportSpp({"SPP"}, {ExportSpp});

}  // namespace
}  // namespace trainer
