#include <algorithm>

#include "import/importers.h"
#include "import/infer.h"
#include "import/layer_helpers.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns whether the node reduces each channel's image to one number, which is global pooling.
bool ReducesImages(const Dims& in, const std::vector<bool>& reduced) {
  return in.size() == 4 && !reduced[0] && !reduced[1] && reduced[2] && reduced[3];
}

int PoolImages(NetBuilder& net, const ImportNode& node, int x, bool max) {
  const Dims in = net.DimsOf(x);
  const NetBuilder::NewLayer added = net.Add(node, "Pooling", {x}, {in[0], in[1], 1, 1});
  caffe::PoolingParameter* const param = added.layer->mutable_pooling_param();
  param->set_pool(max ? caffe::PoolingParameter::MAX : caffe::PoolingParameter::AVE);
  param->set_global_pooling(true);
  return added.top;
}

// Returns the blob with the reduced axes moved to the end. Sets *kept to the lengths of the other
// axes.
int MoveReducedLast(NetBuilder& net, const ImportNode& node, int x,
                    const std::vector<bool>& reduced, Dims* kept) {
  const Dims in = net.DimsOf(x);
  Dims order;
  for (const bool wanted : {false, true}) {
    for (size_t i = 0; i < in.size(); ++i) {
      if (reduced[i] != wanted) continue;
      order.push_back(static_cast<int64_t>(i));
      if (!wanted) kept->push_back(in[i]);
    }
  }
  return net.Permute(node, x, order, "last");
}

int ReduceLast(NetBuilder& net, const ImportNode& node, int x, const std::vector<bool>& reduced) {
  using Reduction = caffe::ReductionParameter;
  Dims kept;
  const int moved = MoveReducedLast(net, node, x, reduced, &kept);
  const NetBuilder::NewLayer added = net.Add(node, "Reduction", {moved}, kept);
  Reduction* const param = added.layer->mutable_reduction_param();
  const std::string& op = node.op;
  param->set_operation(op == "ReduceMean"  ? Reduction::MEAN
                       : op == "ReduceL1"  ? Reduction::ASUM
                       : op == "ReduceSum" ? Reduction::SUM
                                           : Reduction::SUMSQ);
  if (!kept.empty()) param->set_axis(static_cast<int32_t>(kept.size()));
  return op == "ReduceL2" ? net.Power(node, added.top, 1, 0, 0.5f, "root") : added.top;
}

// Computes the maximum, and the minimum as -max(-x). Pooling reduces images, so the reduced axes
// are reshaped to pixels.
int ReduceToExtreme(NetBuilder& net, const ImportNode& node, int x,
                    const std::vector<bool>& reduced) {
  const bool least = node.op == "ReduceMin";
  if (least) x = net.Power(node, x, -1, 0, 1, "negative");
  if (!ReducesImages(net.DimsOf(x), reduced)) {
    Dims kept;
    x = MoveReducedLast(net, node, x, reduced, &kept);
    const int64_t items = kept.empty() ? 1 : kept[0], rest = CountOf(kept) / items;
    x = net.Reshape(node, x, {items, rest, CountOf(net.DimsOf(x)) / CountOf(kept), 1}, "image");
  }
  const int top = PoolImages(net, node, x, true);
  return least ? net.Power(node, top, -1, 0, 1, "min") : top;
}

void ImportReduce(NetBuilder& net, const ImportNode& node) {
  int top = net.BlobOf(node, 0);
  const Dims in = net.DimsOf(top), out = net.graph().DimsOf(node.outputs[0]);
  const std::vector<bool> reduced = ReducedAxes(net.graph(), node);
  const bool extreme = node.op == "ReduceMax" || node.op == "ReduceMin";
  const bool mean = node.op == "ReduceMean", none = std::ranges::count(reduced, true) == 0;
  bool any = false;
  for (size_t i = 0; i < in.size(); ++i) any = any || (reduced[i] && in[i] != 1);
  if (none || (!any && (extreme || mean || node.op == "ReduceSum"))) {
    return net.SetOutput(node, 0, net.Reshape(node, top, out));
  }
  if (extreme) {
    top = ReduceToExtreme(net, node, top, reduced);
  } else if (mean && ReducesImages(in, reduced)) {
    top = PoolImages(net, node, top, false);
  } else {
    top = ReduceLast(net, node, top, reduced);
  }
  net.SetOutput(node, 0, net.Reshape(node, top, out, "shape"));
}

void ImportArgMax(NetBuilder& net, const ImportNode& node) {
  const int x = net.BlobOf(node, 0);
  const Dims in = net.DimsOf(x), out = net.graph().DimsOf(node.outputs[0]);
  const int axis = AxisOf(net.graph(), node, node.Int("axis", 0), in.size());
  Dims kept = in;
  kept[static_cast<size_t>(axis)] = 1;
  const NetBuilder::NewLayer added = net.Add(node, "ArgMax", {x}, kept);
  added.layer->mutable_argmax_param()->set_axis(axis);
  net.SetOutput(node, 0, net.Reshape(node, added.top, out, "shape"));
}

}  // namespace

void AddReduceImporters(NodeImporters* all) {
  for (const char* op : {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1",
                         "ReduceL2", "ReduceSumSquare"}) {
    (*all)[op] = ImportReduce;
  }
  (*all)["ArgMax"] = ImportArgMax;
}

}  // namespace trainer
