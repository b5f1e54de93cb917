#include <algorithm>

#include "import/importers.h"
#include "import/infer.h"
#include "import/layer_helpers.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The mean or maximum of each channel's image is global pooling.
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

// Moves the reduced axes to the end, where a Reduction layer reduces them.
int ReduceLast(NetBuilder& net, const ImportNode& node, int x, const std::vector<bool>& reduced) {
  using Reduction = caffe::ReductionParameter;
  const Dims in = net.DimsOf(x);
  Dims order, kept;
  for (const bool wanted : {false, true}) {
    for (size_t i = 0; i < in.size(); ++i) {
      if (reduced[i] != wanted) continue;
      order.push_back(static_cast<int64_t>(i));
      if (!wanted) kept.push_back(in[i]);
    }
  }
  const int moved = net.Permute(node, x, order, "last");
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

void ImportReduce(NetBuilder& net, const ImportNode& node) {
  int top = net.BlobOf(node, 0);
  const Dims in = net.DimsOf(top), out = net.graph().DimsOf(node.outputs[0]);
  const std::vector<bool> reduced = ReducedAxes(net.graph(), node);
  const bool extreme = node.op == "ReduceMax" || node.op == "ReduceMin";
  bool any = false;
  for (size_t i = 0; i < in.size(); ++i) any = any || (reduced[i] && in[i] != 1);
  const bool plain = extreme || node.op == "ReduceMean" || node.op == "ReduceSum" ||
                     std::ranges::count(reduced, true) == 0;
  if (!any && plain) return net.SetOutput(node, 0, net.Reshape(node, top, out));
  if (ReducesImages(in, reduced) && (extreme || node.op == "ReduceMean")) {
    const bool least = node.op == "ReduceMin";
    if (least) top = net.Power(node, top, -1, 0, 1, "negative");
    top = PoolImages(net, node, top, extreme);
    if (least) top = net.Power(node, top, -1, 0, 1, "min");
  } else if (extreme) {
    net.graph().Refuse(node,
                       "a maximum or minimum is only possible over the rows and columns of "
                       "images, by Pooling");
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
