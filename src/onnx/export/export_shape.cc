// Exports layers that rearrange numbers without changing them.

#include <algorithm>

#include "export/layer_export.h"

namespace trainer {
namespace {

void ExportConcat(const LayerExport& layer) {
  const caffe::ConcatParameter& p = layer.proto().concat_param();
  if (layer.NumInputs() == 1) return layer.Set(0, layer.In());
  const int axis =
      p.has_concat_dim() ? static_cast<int>(p.concat_dim()) : layer.InShape().Axis(p.axis());
  GraphWriter::Names inputs;
  for (int i = 0; i < layer.NumInputs(); ++i) inputs.push_back(layer.In(i));
  layer.Set(0, layer.graph().Add("Concat", inputs, {{"axis", axis}}));
}

void ExportSlice(const LayerExport& layer) {
  const caffe::SliceParameter& p = layer.proto().slice_param();
  const int outputs = layer.NumOutputs();
  if (outputs == 1) return layer.Set(0, layer.In());
  GraphWriter& graph = layer.graph();
  const int axis =
      p.has_slice_dim() ? static_cast<int>(p.slice_dim()) : layer.InShape().Axis(p.axis());
  GraphWriter::Names parts;
  if (layer.InShape().IsFree(axis)) {
    if (p.slice_point_size() > 0) {
      layer.RefuseIn("slice_param", "slice_point",
                     "it cuts an axis whose length depends on the batch size; give --batch=fixed");
    }
    GraphWriter::Attributes attributes = {{"axis", axis}};
    if (graph.opset() >= 18) attributes.push_back({"num_outputs", outputs});
    parts = graph.AddMany("Split", {layer.In()}, static_cast<size_t>(outputs), attributes);
  } else {
    std::vector<int64_t> lengths;
    for (int i = 0; i < outputs; ++i) lengths.push_back(layer.OutShape(i)[axis]);
    parts = graph.Split(layer.In(), axis, lengths);
  }
  for (int i = 0; i < outputs; ++i) layer.Set(i, parts[static_cast<size_t>(i)]);
}

void ExportFlatten(const LayerExport& layer) {
  const FreeShape &in = layer.InShape(), &out = layer.OutShape();
  const caffe::FlattenParameter& p = layer.proto().flatten_param();
  if (out.Rank() == 2 && in.Axis(p.axis()) == 1) {
    return layer.Set(0, layer.graph().Add("Flatten", {layer.In()}, {{"axis", 1}}));
  }
  layer.Set(0, layer.Reshape(layer.In(), in, out));
}

void ExportReshape(const LayerExport& layer) {
  layer.Set(0, layer.Reshape(layer.In(), layer.InShape(), layer.OutShape()));
}

void ExportPermute(const LayerExport& layer) {
  const auto& given = layer.proto().permute_param().order();
  std::vector<int64_t> order(given.begin(), given.end());
  for (int axis = 0; axis < layer.InShape().Rank(); ++axis) {
    if (std::ranges::find(given, static_cast<uint32_t>(axis)) == given.end()) {
      order.push_back(axis);
    }
  }
  layer.Set(0, layer.graph().Transpose(layer.In(), order));
}

void ExportTile(const LayerExport& layer) {
  const caffe::TileParameter& p = layer.proto().tile_param();
  std::vector<int64_t> repeats(static_cast<size_t>(layer.InShape().Rank()), 1);
  repeats[static_cast<size_t>(layer.InShape().Axis(p.axis()))] = p.tiles();
  layer.Set(0, layer.graph().Add("Tile", {layer.In(), layer.graph().Ints(repeats)}));
}

// Computes the ends in the graph if the length of the second input depends on the batch size.
void ExportCrop(const LayerExport& layer) {
  const caffe::CropParameter& p = layer.proto().crop_param();
  GraphWriter& graph = layer.graph();
  const FreeShape& in = layer.InShape();
  const int first = in.Axis(p.axis());
  std::vector<int64_t> axes, starts, ends;
  bool is_free = false;
  for (int axis = first; axis < in.Rank(); ++axis) {
    const int given = p.offset_size();
    const int64_t offset = given == 0 ? 0 : p.offset(given == 1 ? 0 : axis - first);
    axes.push_back(axis);
    starts.push_back(offset);
    ends.push_back(offset + layer.InShape(1)[axis]);
    is_free = is_free || layer.InShape(1).IsFree(axis);
  }
  std::string end;
  if (!is_free) {
    end = graph.Ints(ends);
  } else {
    const std::string shape = graph.Add("Shape", {layer.In(1)});
    const std::string lengths = graph.Add("Gather", {shape, graph.Ints(axes)}, {{"axis", 0}});
    end = graph.Add("Add", {lengths, graph.Ints(starts)});
  }
  layer.Set(0, graph.Add("Slice", {layer.In(), graph.Ints(starts), end, graph.Ints(axes)}));
}

// Reads an item's numbers as (C, H, s, W, s) and writes them as (s, s, C, H, W), or does the
// reverse.
void ExportReorg(const LayerExport& layer) {
  const caffe::ReorgParameter& p = layer.proto().reorg_param();
  GraphWriter& graph = layer.graph();
  const FreeShape &in = layer.InShape(), &out = layer.OutShape();
  const int64_t s = p.stride(), channels = layer.FixedLength(in, 1) / (s * s);
  const int64_t h = layer.FixedLength(in, 2), w = layer.FixedLength(in, 3);
  const std::vector<int64_t> squares = {0, channels, h, s, w, s};
  const std::vector<int64_t> offsets = {0, s, s, channels, h, w};
  const std::string x = graph.Reshape(layer.In(), p.reverse() ? offsets : squares);
  const std::string moved =
      p.reverse() ? graph.Transpose(x, {0, 3, 4, 1, 5, 2}) : graph.Transpose(x, {0, 3, 5, 1, 2, 4});
  layer.Set(0, graph.Reshape(moved, {0, out[1], out[2], out[3]}));
}

// Casts the indices to integers, because the net holds them as floats.
void ExportBatchReindex(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const std::string index = graph.Cast(layer.In(1), onnx::TensorProto::INT64);
  layer.Set(0, graph.Add("Gather", {layer.In(), index}, {{"axis", 0}}));
}

void ExportFilter(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const int last = layer.NumInputs() - 1;
  const std::string selector = graph.Reshape(layer.In(last), {-1});
  const std::string selected = graph.Cast(selector, onnx::TensorProto::BOOL);
  for (int i = 0; i < last; ++i) {
    layer.Set(i, graph.Add("Compress", {layer.In(i), selected}, {{"axis", 0}}));
  }
}

// Cuts the image, then interpolates bilinearly with aligned corners.
void ExportInterp(const LayerExport& layer) {
  const caffe::InterpParameter& p = layer.proto().interp_param();
  GraphWriter& graph = layer.graph();
  const FreeShape &in = layer.InShape(), &out = layer.OutShape();
  std::string x = layer.In();
  if (p.pad_beg() != 0 || p.pad_end() != 0) {
    const int64_t start = -int64_t{p.pad_beg()};
    const int64_t bottom = layer.FixedLength(in, 2) + p.pad_end();
    const int64_t right = layer.FixedLength(in, 3) + p.pad_end();
    x = graph.Add("Slice",
                  {x, graph.Ints({start, start}), graph.Ints({bottom, right}), graph.Ints({2, 3})});
  }
  std::vector<int64_t> lengths;
  for (const int axis : {1, 2, 3}) lengths.push_back(layer.FixedLength(out, axis));
  const std::string sizes =
      graph.Add("Concat", {layer.Length(x, in, 0), graph.Ints(lengths)}, {{"axis", 0}});
  layer.Set(0,
            graph.Add("Resize", {x, "", "", sizes},
                      {{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}}));
}

const RegisterExport kExportConcat({"Concat"}, {ExportConcat});
const RegisterExport kExportSlice({"Slice"}, {ExportSlice});
const RegisterExport kExportFlatten({"Flatten"}, {ExportFlatten});
const RegisterExport kExportReshape({"Reshape"}, {ExportReshape});
const RegisterExport kExportPermute({"Permute"}, {ExportPermute});
const RegisterExport kExportTile({"Tile"}, {ExportTile});
const RegisterExport kExportCrop({"Crop"}, {ExportCrop});
const RegisterExport kExportReorg({"Reorg"}, {ExportReorg});
const RegisterExport kExportBatchReindex({"BatchReindex"}, {ExportBatchReindex});
const RegisterExport kExportFilter({"Filter"}, {ExportFilter});
const RegisterExport kExportInterp({"Interp"}, {ExportInterp});

}  // namespace
}  // namespace trainer
