#include <numeric>

#include "import/importers.h"
#include "import/infer.h"
#include "import/layer_helpers.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Imports Reshape, Flatten, Squeeze and Unsqueeze.
void ImportReshape(NetBuilder& net, const ImportNode& node) {
  const Dims out = net.graph().DimsOf(node.outputs[0]);
  net.SetOutput(node, 0, net.Reshape(node, net.BlobOf(node, 0), out));
}

void ImportTranspose(NetBuilder& net, const ImportNode& node) {
  net.SetOutput(node, 0, net.Permute(node, net.BlobOf(node, 0), OrderOf(net.graph(), node)));
}

void ImportIdentity(NetBuilder& net, const ImportNode& node) {
  net.SetOutput(node, 0, net.BlobOf(node, 0));
}

// Accepts a conversion to integers only where its result is an index, because a net holds floats
// and a conversion would truncate them.
void ImportCast(NetBuilder& net, const ImportNode& node) {
  ImportGraph& graph = net.graph();
  const int64_t to = node.Int("to", 0);
  const bool floats = to == onnx::TensorProto::FLOAT || to == onnx::TensorProto::DOUBLE ||
                      to == onnx::TensorProto::FLOAT16 || to == onnx::TensorProto::BFLOAT16;
  bool indices = !graph.value(node.outputs[0]).is_output;
  for (const int reader : graph.value(node.outputs[0]).consumers) {
    indices = indices && graph.node(reader).op == "Gather";
  }
  if (!floats && !indices) graph.Refuse(node, "a layer computes floats, no other numbers");
  ImportIdentity(net, node);
}

void ImportDropout(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  if (graph.IsUsed(node, 1)) {
    graph.Refuse(node, "its mask (output 1) is used; a Dropout layer does not give it");
  }
  const float given = graph.NumberOf(node.Input(1)).value_or(node.Float("ratio", 0.5f));
  if (!(given >= 0 && given < 1)) {
    graph.Refuse(node, Join("a ratio of ", given, " is not possible; it must be 0 to below 1"));
  }
  if (given == 0) return ImportIdentity(net, node);
  const NetBuilder::NewLayer added = net.AddUnary(node, "Dropout", net.BlobOf(node, 0));
  if (given != 0.5f) added.layer->mutable_dropout_param()->set_dropout_ratio(given);
  net.SetOutput(node, 0, added.top);
}

void ImportExpand(NetBuilder& net, const ImportNode& node) {
  const Dims out = net.graph().DimsOf(node.outputs[0]);
  net.SetOutput(node, 0, BroadcastTo(net, node, net.BlobOf(node, 0), out));
}

void ImportTile(NetBuilder& net, const ImportNode& node) {
  int top = net.BlobOf(node, 0);
  const Dims out = net.graph().DimsOf(node.outputs[0]);
  for (size_t axis = 0; axis < out.size(); ++axis) {
    Dims dims = net.DimsOf(top);
    const int64_t tiles = out[axis] / dims[axis];
    if (tiles == 1) continue;
    dims[axis] = out[axis];
    const NetBuilder::NewLayer added = net.Add(node, "Tile", {top}, dims);
    added.layer->mutable_tile_param()->set_axis(static_cast<int32_t>(axis));
    added.layer->mutable_tile_param()->set_tiles(static_cast<int32_t>(tiles));
    top = added.top;
  }
  net.SetOutput(node, 0, top);
}

// Moves blocks of channels to pixels, or pixels to channels, by a permutation between two reshapes.
void ImportBlocks(NetBuilder& net, const ImportNode& node) {
  const int x = net.BlobOf(node, 0);
  const Dims in = net.DimsOf(x), out = net.graph().DimsOf(node.outputs[0]);
  const int64_t side = node.Int("blocksize", 1);
  Dims split, order;
  if (node.op == "SpaceToDepth") {
    split = {in[0], in[1], out[2], side, out[3], side};
    order = {0, 3, 5, 1, 2, 4};
  } else if (node.Text("mode", "DCR") == "DCR") {
    split = {in[0], side, side, out[1], in[2], in[3]};
    order = {0, 3, 4, 1, 5, 2};
  } else {
    split = {in[0], out[1], side, side, in[2], in[3]};
    order = {0, 1, 4, 2, 5, 3};
  }
  const int blocks = net.Reshape(node, x, split, "blocks");
  const int moved = net.Permute(node, blocks, order, "moved");
  net.SetOutput(node, 0, net.Reshape(node, moved, out));
}

}  // namespace

void AddShapeImporters(NodeImporters* all) {
  for (const char* op : {"Reshape", "Flatten", "Squeeze", "Unsqueeze"}) {
    (*all)[op] = ImportReshape;
  }
  (*all)["Transpose"] = ImportTranspose;
  (*all)["Identity"] = ImportIdentity;
  (*all)["Cast"] = ImportCast;
  (*all)["Dropout"] = ImportDropout;
  (*all)["Expand"] = ImportExpand;
  (*all)["Tile"] = ImportTile;
  (*all)["DepthToSpace"] = (*all)["SpaceToDepth"] = ImportBlocks;
}

}  // namespace trainer
