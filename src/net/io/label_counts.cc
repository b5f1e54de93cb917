#include "trainer/net/label_counts.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/text/text.h"
#include "trainer/net/graph.h"

namespace trainer {
namespace {

LabelCount* VaryingCountOf(const Node& node) {
  LabelCount* const count = node.layer->label_count();
  return count != nullptr && count->Varies() ? count : nullptr;
}

}  // namespace

LabelCount* OnlyLabelCount(const Net& net) {
  const Graph& graph = net.graph();
  int gradients = 0;
  for (const Value& value : graph.values) {
    if (value.loss_weight != 0 || value.grad_from_next_stage) ++gradients;
  }
  if (gradients != 1) return nullptr;
  for (const Node& node : graph.nodes) {
    LabelCount* const count = VaryingCountOf(node);
    if (count == nullptr || node.has_dynamic_shape) continue;
    if (graph.values[node.out[0]].loss_weight != 0) return count;
  }
  return nullptr;
}

void WarnOfLabelCounts(const Net& net, int passes) {
  for (const Node& node : net.graph().nodes) {
    if (VaryingCountOf(node) == nullptr) continue;
    const char* const field =
        node.spec.proto().loss_param().has_ignore_label() ? "ignore_label" : "class_weight";
    LOG(WARNING) << EscapeControl(
        Join(node.spec.WhereIn("loss_param", field).ToString(), ": layer '", node.spec.name(),
             "' divides the loss of each of the ", passes,
             " passes of iter_size by the labels that count in this pass (normalization: VALID "
             "with ",
             field, "), as Caffe does. An update is the mean over the passes and differs from the ",
             "update of one batch ", passes,
             " times as large; normalization: FULL or BATCH_SIZE makes them equal"));
  }
}

}  // namespace trainer
