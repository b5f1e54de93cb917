// Exports ROIPooling and PSROIPooling.

#include "export/layer_export.h"

namespace trainer {
namespace {

// Returns the regions as rows (R, 5).
std::string AddRegionRows(const LayerExport& layer) {
  if (layer.InShape(1).Rank() == 2) return layer.In(1);
  return layer.graph().Reshape(layer.In(1), {-1, 5});
}

void ExportRoiPooling(const LayerExport& layer) {
  const caffe::ROIPoolingParameter& p = layer.proto().roi_pooling_param();
  layer.Set(0,
            layer.graph().Add("MaxRoiPool", {layer.In(), AddRegionRows(layer)},
                              {{"pooled_shape", std::vector<int64_t>{p.pooled_h(), p.pooled_w()}},
                               {"spatial_scale", p.spatial_scale()}}));
}

// Holds where the cells of the regions begin and end along one axis, as whole numbers (R, side).
struct CellEnds {
  std::string begin, end;
};

// Rounds halves away from 0 as Caffe does, because ONNX's Round rounds them to even.
std::string AddRounded(GraphWriter& graph, const std::string& x) {
  const std::string size = graph.Add("Floor", {graph.Line(graph.Add("Abs", {x}), 1, 0.5f)});
  return graph.Add("Mul", {graph.Add("Sign", {x}), size});
}

// Computes the ends of all cells. `first` and `last` are columns (R, 1) of the regions, and
// `length` is the size of the image.
CellEnds AddCellEnds(const LayerExport& layer, const std::string& first, const std::string& last,
                     int64_t length) {
  const caffe::PSROIPoolingParameter& p = layer.proto().psroi_pooling_param();
  GraphWriter& graph = layer.graph();
  constexpr float kLeastLength = 0.1f;
  const std::string start = graph.Line(AddRounded(graph, first), p.spatial_scale(), 0);
  const std::string stop =
      graph.Line(graph.Line(AddRounded(graph, last), 1, 1), p.spatial_scale(), 0);
  const std::string span =
      graph.Add("Max", {graph.Add("Sub", {stop, start}), graph.Float(kLeastLength)});
  const std::string cell =
      graph.Add("Div", {span, graph.Float(static_cast<float>(p.group_size()))});
  std::vector<float> numbers;
  for (int i = 0; i <= p.group_size(); ++i) numbers.push_back(static_cast<float>(i));
  const auto ends = [&](int from, const char* rounding) {
    const std::vector<float> part(numbers.begin() + from, numbers.end() - 1 + from);
    const std::string at = graph.Add(
        "Add", {graph.Add("Mul", {cell, graph.Floats(part, {1, p.group_size()})}), start});
    const std::string inside = graph.Add("Clip", {graph.Add(rounding, {at}), graph.Float(0),
                                                  graph.Float(static_cast<float>(length))});
    return graph.Cast(inside, onnx::TensorProto::INT64);
  };
  return {ends(0, "Floor"), ends(1, "Ceil")};
}

// Returns, in double precision, the sums of all pixels above and to the left. The table has a row
// per item, cell of a region, y in [0, H] and x in [0, W], and a column per output.
std::string AddSumTable(const LayerExport& layer) {
  const caffe::PSROIPoolingParameter& p = layer.proto().psroi_pooling_param();
  GraphWriter& graph = layer.graph();
  const FreeShape& in = layer.InShape();
  const int64_t side = p.group_size();
  std::string x = graph.Add("Pad", {layer.In(), graph.Ints({0, 0, 1, 1, 0, 0, 0, 0})});
  x = graph.Cast(x, onnx::TensorProto::DOUBLE);
  for (const int64_t axis : {2, 3}) x = graph.Add("CumSum", {x, graph.Int(axis)});
  x = graph.Reshape(x, {0, p.output_dim(), side * side, in[2] + 1, in[3] + 1});
  return graph.Reshape(graph.Transpose(x, {0, 2, 3, 4, 1}), {-1, p.output_dim()});
}

// Computes the mean over each cell (R, side, side) as a difference of four sums from the table.
void ExportPsRoiPooling(const LayerExport& layer) {
  const caffe::PSROIPoolingParameter& p = layer.proto().psroi_pooling_param();
  GraphWriter& graph = layer.graph();
  const FreeShape& in = layer.InShape();
  const int64_t rows = layer.FixedLength(in, 2) + 1, columns = layer.FixedLength(in, 3) + 1;
  const int64_t side = p.group_size();
  const GraphWriter::Names numbers = graph.Split(AddRegionRows(layer), 1, {1, 1, 1, 1, 1});
  const CellEnds across = AddCellEnds(layer, numbers[1], numbers[3], in[3]);
  const CellEnds down = AddCellEnds(layer, numbers[2], numbers[4], in[2]);
  const std::string table = AddSumTable(layer);
  std::vector<int64_t> cells(static_cast<size_t>(side * side));
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<int64_t>(i);
  const std::string cell = graph.Reshape(graph.Ints(cells), {1, side, side});
  const std::string item =
      graph.Unsqueeze(graph.Cast(numbers[0], onnx::TensorProto::INT64), {2});  // (R, 1, 1)
  const std::string plane =
      graph.Add("Add", {graph.Add("Mul", {item, graph.Int(side * side)}), cell});
  const auto sums = [&](const std::string& y, const std::string& x) {
    const std::string row =
        graph.Add("Add", {graph.Add("Mul", {plane, graph.Int(rows)}), graph.Unsqueeze(y, {2})});
    const std::string at =
        graph.Add("Add", {graph.Add("Mul", {row, graph.Int(columns)}), graph.Unsqueeze(x, {1})});
    return graph.Add("Gather", {table, at}, {{"axis", 0}});
  };
  const std::string lower =
      graph.Add("Sub", {sums(down.end, across.end), sums(down.end, across.begin)});
  const std::string upper =
      graph.Add("Sub", {sums(down.begin, across.end), sums(down.begin, across.begin)});
  const std::string sum = graph.Add("Sub", {lower, upper});  // (R, side, side, outputs)
  const std::string height = graph.Unsqueeze(graph.Add("Sub", {down.end, down.begin}), {2, 3});
  const std::string width = graph.Unsqueeze(graph.Add("Sub", {across.end, across.begin}), {1, 3});
  const std::string zero = graph.Int(0), one = graph.Int(1);
  const std::string is_full =
      graph.Add("And", {graph.Add("Greater", {height, zero}), graph.Add("Greater", {width, zero})});
  const std::string area = graph.Add("Where", {is_full, graph.Add("Mul", {height, width}), one});
  const std::string mean = graph.Add("Div", {sum, graph.Cast(area, onnx::TensorProto::DOUBLE)});
  const std::string result =
      graph.Add("Where", {is_full, graph.Cast(mean, onnx::TensorProto::FLOAT), graph.Float(0)});
  layer.Set(0, graph.Transpose(result, {0, 3, 1, 2}));
}

const RegisterExport kExportRoiPooling({"ROIPooling"}, {ExportRoiPooling});
const RegisterExport kExportPsRoiPooling({"PSROIPooling"}, {ExportPsRoiPooling});

}  // namespace
}  // namespace trainer
