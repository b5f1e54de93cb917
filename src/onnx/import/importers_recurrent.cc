#include <algorithm>

#include "import/importers.h"
#include "import/layer_helpers.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Describes an LSTM layer for one direction, and the node's arrays that it reads.
struct LstmDirection {
  int64_t index = 0;  // 0; 1 for the second direction
  bool reverse = false;
  int h = 0, last_h = 0, last_c = 0;  // blobs: (T, N, H), (1, N, H), (1, N, H)
};

// Returns the part of an array that belongs to one direction, which is the first axis. The gates
// are reordered from ONNX's (i, o, f, g) to the layer's (i, f, o, g).
std::vector<float> OrderGates(const std::vector<float>& from, size_t start, size_t gate) {
  std::vector<float> to;
  for (const size_t which : {0u, 2u, 1u, 3u}) {
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(start + which * gate);
    to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(gate));
  }
  return to;
}

void RefuseOtherCells(const NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  const Dims in = graph.DimsOf(node.inputs[0]);
  const std::string usual = "Sigmoid,Tanh,Tanh";
  const std::string functions = node.Text("activations", usual);
  if ((functions != usual && functions != Join(usual, ",", usual)) || node.Has("clip") ||
      node.Int("input_forget", 0) != 0 || node.Input(7) >= 0) {
    graph.Refuse(node,
                 "it has other activations, clipping, coupled gates or peepholes; an LSTM "
                 "layer has none of them");
  }
  if (node.Input(4) < 0) return;
  const Constant* const lengths = graph.ConstantOf(node.inputs[4]);
  for (size_t i = 0; lengths != nullptr && i < lengths->Count(); ++i) {
    if (lengths->At(i) == static_cast<double>(in[0])) continue;
    graph.Refuse(node, "its sequences have different lengths (sequence_lens)");
  }
  if (lengths == nullptr) graph.Refuse(node, "sequence_lens is computed by the net");
}

// Adds a DummyData layer and returns its blob, which is filled with one number.
int AddFilled(NetBuilder& net, const ImportNode& node, const Dims& dims, float value,
              const std::string& suffix) {
  const NetBuilder::NewLayer added = net.Add(node, "DummyData", {}, dims, suffix);
  caffe::DummyDataParameter* const param = added.layer->mutable_dummy_data_param();
  for (const int64_t dim : dims) {
    if (param->shape_size() == 0) param->add_shape();
    param->mutable_shape(0)->add_dim(dim);
  }
  if (value != 0) param->add_data_filler()->set_value(value);
  return added.top;
}

// Returns the state before the first step, (1, N, H): input 5 or 6 of the node, or zeros.
int FirstState(NetBuilder& net, const ImportNode& node, size_t input, int64_t direction,
               const Dims& dims, const std::string& suffix) {
  const Constant* const constant = net.graph().ConstantOf(node.Input(input));
  if (node.Input(input) >= 0 && constant == nullptr) {
    return SlicePart(net, node, net.BlobOf(node, input), 0, direction, 1, suffix);
  }
  const int zeros = AddFilled(net, node, dims, 0, suffix);
  if (constant == nullptr) return zeros;
  const int64_t count = CountOf(dims);
  const Constant own =
      SelectElements(*constant, dims, [&](int64_t i) { return direction * count + i; });
  const bool is_zero =
      std::ranges::all_of(FloatsOfConstant(own), [](float value) { return value == 0; });
  return is_zero ? zeros : AddConstantTo(net, node, zeros, own, suffix + "_start");
}

// Returns the steps in the opposite order. The first call creates the blob `order` with the
// indices.
int ReverseSteps(NetBuilder& net, const ImportNode& node, int blob, const std::string& suffix,
                 int* order) {
  const int64_t steps = net.DimsOf(blob)[0];
  if (*order < 0) {
    CheckMadeNumbers(net, node, steps);
    const NetBuilder::NewLayer added = net.Add(node, "Parameter", {}, {steps}, "order");
    added.layer->mutable_parameter_param()->mutable_shape()->add_dim(steps);
    std::vector<float> indices;
    for (int64_t t = steps; t-- > 0;) indices.push_back(static_cast<float>(t));
    net.AddWeight(node, added, {steps}, indices);
    net.KeepWeights(added, 1);
    *order = added.top;
  }
  return net.Add(node, "BatchReindex", {blob, *order}, Dims(net.DimsOf(blob)), suffix).top;
}

void AddLstm(NetBuilder& net, const ImportNode& node, int x, int cont, LstmDirection* to) {
  const ImportGraph& graph = net.graph();
  const Dims in = net.DimsOf(x);
  const Constant& recurrent = *graph.ConstantOf(node.inputs[2]);
  const Constant* const bias = graph.ConstantOf(node.Input(3));
  const int64_t hidden = recurrent.dims[2];
  const Dims state = {1, in[1], hidden};
  const std::string side = to->reverse ? "reverse_" : "";
  const int h = FirstState(net, node, 5, to->index, state, side + "h");
  const int c = FirstState(net, node, 6, to->index, state, side + "c");
  const NetBuilder::NewLayer added =
      net.Add(node, "LSTM", {x, cont, h, c}, {in[0], in[1], hidden}, to->reverse ? "reverse" : "");
  added.layer->mutable_recurrent_param()->set_num_output(static_cast<uint32_t>(hidden));
  added.layer->mutable_recurrent_param()->set_expose_hidden(true);
  to->h = added.top;
  to->last_h = net.AddTop(added, state, "h");
  to->last_c = net.AddTop(added, state, "c");
  const auto gate = static_cast<size_t>(hidden), width = static_cast<size_t>(in[2]);
  const auto direction = static_cast<size_t>(to->index);
  net.AddWeight(node, added, {4 * hidden, in[2]},
                OrderGates(FloatsOfConstant(*graph.ConstantOf(node.inputs[1])),
                           direction * 4 * gate * width, gate * width));
  std::vector<float> sums(4 * gate, 0.0f);
  if (bias != nullptr) {
    const std::vector<float> both = FloatsOfConstant(*bias);
    if (both.size() < (direction + 1) * 8 * gate) graph.Refuse(node, "its bias is too short");
    for (size_t i = 0; i < 4 * gate; ++i) {
      sums[i] = both[direction * 8 * gate + i] + both[direction * 8 * gate + 4 * gate + i];
    }
  }
  net.AddWeight(node, added, {4 * hidden}, OrderGates(sums, 0, gate));
  net.AddWeight(node, added, {4 * hidden, hidden},
                OrderGates(FloatsOfConstant(recurrent), direction * 4 * gate * gate, gate * gate));
}

// Joins one blob of each direction along an axis of length 1.
int JoinDirections(NetBuilder& net, const ImportNode& node, const std::vector<int>& blobs,
                   size_t axis, const std::string& suffix) {
  if (blobs.size() == 1) return blobs[0];
  Dims dims = net.DimsOf(blobs[0]);
  dims[axis] = static_cast<int64_t>(blobs.size());
  const NetBuilder::NewLayer added = net.Add(node, "Concat", blobs, dims, suffix);
  if (axis != 1) added.layer->mutable_concat_param()->set_axis(static_cast<int32_t>(axis));
  return added.top;
}

void ImportLstm(NetBuilder& net, const ImportNode& node) {
  RefuseOtherCells(net, node);
  const int x = net.BlobOf(node, 0);
  const Dims in = net.DimsOf(x);
  const int64_t hidden = net.graph().DimsOf(node.inputs[2])[2];
  const std::string way = node.Text("direction", "forward");
  std::vector<LstmDirection> directions;
  if (way != "reverse") directions.push_back({0, false});
  if (way != "forward") directions.push_back({way == "reverse" ? 0 : 1, true});
  const auto count = static_cast<int64_t>(directions.size());
  if (count != net.graph().DimsOf(node.inputs[1])[0]) {
    net.graph().Refuse(node, Join("direction ", way, " does not fit its weights"));
  }
  for (const size_t state : {5u, 6u}) {
    if (node.Input(state) < 0) continue;
    if (net.graph().DimsOf(node.inputs[state]) != Dims{count, in[1], hidden}) {
      net.graph().Refuse(node, Join("its first state (input ", state, ") has the shape ",
                                    DimsText(net.graph().DimsOf(node.inputs[state]))));
    }
  }
  net.Note(
      Join("the LSTM layer of node '", node.name, "' takes ", in[1],
           " sequences in each pass; for another number, import the model again with --batch"));
  const int cont = AddFilled(net, node, {in[0], in[1]}, 1, "cont");
  int order = -1;
  std::vector<int> h, last_h, last_c;
  for (LstmDirection& direction : directions) {
    const bool turns = direction.reverse;
    const int steps = turns ? ReverseSteps(net, node, x, "reversed", &order) : x;
    AddLstm(net, node, steps, cont, &direction);
    const int forward =
        turns ? ReverseSteps(net, node, direction.h, "forward", &order) : direction.h;
    h.push_back(net.Reshape(node, forward, {in[0], 1, in[1], hidden}, "direction"));
    last_h.push_back(direction.last_h);
    last_c.push_back(direction.last_c);
  }
  net.SetOutput(node, 0, JoinDirections(net, node, h, 1, "both"));
  if (node.outputs.size() > 1) {
    net.SetOutput(node, 1, JoinDirections(net, node, last_h, 0, "both_h"));
  }
  if (node.outputs.size() > 2) {
    net.SetOutput(node, 2, JoinDirections(net, node, last_c, 0, "both_c"));
  }
}

}  // namespace

void AddRecurrentImporters(NodeImporters* all) { (*all)["LSTM"] = ImportLstm; }

}  // namespace trainer
