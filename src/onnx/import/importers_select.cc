// Imports operators that join arrays and operators that take parts of them.

#include <algorithm>

#include "import/importers.h"
#include "import/infer.h"
#include "import/layer_helpers.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns a blob with the constant's numbers for each item, e.g. the class token of a transformer.
// A learned Bias is added to zeros, and the zeros come from a value of the net, so that they follow
// its batch size.
int ConstantForItems(NetBuilder& net, const ImportNode& node, const Constant& constant, int peer,
                     size_t axis) {
  const ImportGraph& graph = net.graph();
  Dims dims = constant.dims;
  const Dims of_peer = net.DimsOf(peer);
  dims[0] = of_peer[0];
  // The batch's copies of the constant must be equal.
  const auto item = static_cast<int64_t>(constant.Count()) / std::max<int64_t>(constant.dims[0], 1);
  for (size_t i = 0; i < constant.Count(); ++i) {
    if (constant.At(i) != constant.At(i % static_cast<size_t>(item))) {
      graph.Refuse(node, "a constant input differs between the items of the batch");
    }
  }
  net.Share(peer);  // prevents layers from working in place on it
  int zeros = peer;
  if (dims[axis] <= of_peer[axis]) {
    zeros = SlicePart(net, node, zeros, axis, 0, dims[axis], "first");
  } else {
    zeros = SlicePart(net, node, zeros, axis, 0, 1, "first");
    zeros = BroadcastTo(net, node, zeros, dims, "first");
  }
  zeros = net.Power(node, zeros, 0, 0, 1, "zeros");
  Dims one = dims;
  one[0] = 1;
  const Constant first = SelectElements(constant, one, [](int64_t i) { return i; });
  const bool all_zero =
      std::ranges::all_of(FloatsOfConstant(first), [](float value) { return value == 0; });
  return all_zero ? zeros : AddConstantTo(net, node, zeros, first, "token");
}

void ImportConcat(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  const Dims out = graph.DimsOf(node.outputs[0]);
  const auto axis = static_cast<size_t>(AxisOf(graph, node, node.Int("axis", 1), out.size()));
  const auto peer = std::ranges::find_if(
      node.inputs, [&](int input) { return graph.ConstantOf(input) == nullptr; });
  const int with_batch =
      net.BlobOf(node, static_cast<size_t>(std::distance(node.inputs.begin(), peer)));
  std::vector<int> blobs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Constant* const constant = graph.ConstantOf(node.inputs[i]);
    if (constant != nullptr && constant->Count() == 0) continue;
    if (constant != nullptr && axis == 0) {
      graph.Refuse(node, "a constant is joined to the batch; a net's batch has items only");
    }
    blobs.push_back(constant == nullptr ? net.BlobOf(node, i)
                                        : ConstantForItems(net, node, *constant, with_batch, axis));
  }
  if (blobs.size() == 1) return net.SetOutput(node, 0, blobs[0]);
  const NetBuilder::NewLayer added = net.Add(node, "Concat", blobs, out);
  if (axis != 1) added.layer->mutable_concat_param()->set_axis(static_cast<int32_t>(axis));
  net.SetOutput(node, 0, added.top);
}

void ImportSplit(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  const int x = net.BlobOf(node, 0);
  if (node.outputs.size() == 1) return net.SetOutput(node, 0, x);
  Dims part = net.DimsOf(x);
  const auto axis = static_cast<size_t>(AxisOf(graph, node, node.Int("axis", 0), part.size()));
  const Dims lengths = SplitLengths(graph, node, part[axis], IntsOf(graph, node, "split", 1));
  part[axis] = lengths[0];
  const NetBuilder::NewLayer added = net.Add(node, "Slice", {x}, part);
  caffe::SliceParameter* const param = added.layer->mutable_slice_param();
  if (axis != 1) param->set_axis(static_cast<int32_t>(axis));
  const bool equal = std::ranges::all_of(lengths, [&](int64_t n) { return n == lengths[0]; });
  net.SetOutput(node, 0, added.top);
  int64_t at = 0;
  for (size_t i = 1; i < lengths.size(); ++i) {
    at += lengths[i - 1];
    if (!equal) param->add_slice_point(static_cast<uint32_t>(at));
    part[axis] = lengths[i];
    net.SetOutput(node, i, net.AddTop(added, part, "part"));
  }
}

// Takes every step-th pixel of an image by pooling with windows of one pixel.
int PickPixels(NetBuilder& net, const ImportNode& node, int blob, const AxisSlice& rows,
               const AxisSlice& columns) {
  Dims dims = net.DimsOf(blob);
  dims[2] = rows.count;
  dims[3] = columns.count;
  const NetBuilder::NewLayer added = net.Add(node, "Pooling", {blob}, dims, "pixels");
  caffe::PoolingParameter* const param = added.layer->mutable_pooling_param();
  param->set_kernel_size(1);
  param->set_stride_h(static_cast<uint32_t>(std::max<int64_t>(rows.step, 1)));
  param->set_stride_w(static_cast<uint32_t>(std::max<int64_t>(columns.step, 1)));
  param->set_round_mode(caffe::PoolingParameter::FLOOR);
  return added.top;
}

void ImportSlice(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  int top = net.BlobOf(node, 0);
  const Dims in = net.DimsOf(top);
  const std::vector<AxisSlice> slices = SlicesOf(graph, node);
  bool skips_pixels = false;
  for (size_t axis = 0; axis < slices.size(); ++axis) {
    const AxisSlice& slice = slices[axis];
    const bool is_pixels = in.size() == 4 && axis >= 2 && slice.step > 1;
    if (slice.step == 1 || is_pixels) {
      top = SlicePart(net, node, top, axis, slice.start, (slice.count - 1) * slice.step + 1);
      skips_pixels = skips_pixels || is_pixels;
      continue;
    }
    if (axis == 0) graph.Refuse(node, "it reorders the batch");
    AxisMatrix matrix = ZeroMatrix(net, node, slice.count, in[axis]);
    for (int64_t i = 0; i < slice.count; ++i) {
      matrix.values[static_cast<size_t>(i * in[axis] + slice.start + i * slice.step)] = 1;
    }
    top = MultiplyAxis(net, node, top, axis, matrix, Join("axis", axis));
  }
  net.SetOutput(node, 0, skips_pixels ? PickPixels(net, node, top, slices[2], slices[3]) : top);
}

// Adds an Embed layer, which looks up rows of a table.
void ImportEmbedding(NetBuilder& net, const ImportNode& node, const Constant& table) {
  const ImportGraph& graph = net.graph();
  if (table.dims.size() != 2 || !table.is_float || node.Int("axis", 0) != 0) {
    graph.Refuse(node, "only rows of a matrix of floats can be looked up, by an Embed layer");
  }
  const NetBuilder::NewLayer added =
      net.Add(node, "Embed", {net.BlobOf(node, 1)}, graph.DimsOf(node.outputs[0]));
  caffe::EmbedParameter* const param = added.layer->mutable_embed_param();
  param->set_input_dim(static_cast<uint32_t>(table.dims[0]));
  param->set_num_output(static_cast<uint32_t>(table.dims[1]));
  param->set_bias_term(false);
  net.AddWeight(node, added, table.dims, table.floats);
  net.SetOutput(node, 0, added.top);
}

void ImportGather(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  if (const Constant* const table = graph.ConstantOf(node.inputs[0])) {
    return ImportEmbedding(net, node, *table);
  }
  const int x = net.BlobOf(node, 0);
  const Dims dims = net.DimsOf(x), out = graph.DimsOf(node.outputs[0]);
  const auto axis = static_cast<size_t>(AxisOf(graph, node, node.Int("axis", 0), dims.size()));
  const Constant* const indices = graph.ConstantOf(node.inputs[1]);
  if (indices == nullptr || indices->is_float || indices->Count() == 0) {
    graph.Refuse(node,
                 "its indices are computed by the net; only a constant table can be looked "
                 "up, by an Embed layer");
  }
  bool rising = true;
  for (size_t i = 0; i < indices->ints.size(); ++i) {
    const int64_t index = indices->ints[i];
    if (index < -dims[axis] || index >= dims[axis]) {
      graph.Refuse(node, Join("index ", index, " does not exist; axis ", axis, " has ", dims[axis],
                              " elements"));
    }
    rising = rising && index == indices->ints[0] + static_cast<int64_t>(i);
  }
  const auto count = static_cast<int64_t>(indices->Count());
  int64_t start = indices->ints[0];
  if (start < 0) start += dims[axis];
  if (rising && start + count <= dims[axis]) {
    const int part = SlicePart(net, node, x, axis, start, count);
    return net.SetOutput(node, 0, net.Reshape(node, part, out, "shape"));
  }
  AxisMatrix matrix = ZeroMatrix(net, node, count, dims[axis]);
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = indices->ints[static_cast<size_t>(i)];
    if (index < 0) index += dims[axis];
    matrix.values[static_cast<size_t>(i * dims[axis] + index)] = 1;
  }
  const int picked = MultiplyAxis(net, node, x, axis, matrix, "pick");
  net.SetOutput(node, 0, net.Reshape(node, picked, out, "shape"));
}

}  // namespace

void AddSelectImporters(NodeImporters* all) {
  (*all)["Concat"] = ImportConcat;
  (*all)["Split"] = ImportSplit;
  (*all)["Slice"] = ImportSlice;
  (*all)["Gather"] = ImportGather;
}

}  // namespace trainer
