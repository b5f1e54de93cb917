#include "trainer/net/label_counts.h"

#include <glog/logging.h>

#include <algorithm>

#include "graph.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

LabelCount* VaryingCountOf(const StepInfo& step) {
  auto* const counts = dynamic_cast<CountsLabels*>(step.layer.get());
  return counts != nullptr && counts->label_count().Varies() ? &counts->label_count() : nullptr;
}

}  // namespace

LabelCount* OnlyLabelCount(const Net& net) {
  const Graph& graph = net.graph();
  int gradients = 0;
  for (const ValueInfo& value : graph.values) {
    if (value.loss_weight != 0 || value.gets_gradient) ++gradients;
  }
  if (gradients != 1) return nullptr;
  for (const StepInfo& step : graph.steps) {
    LabelCount* const count = VaryingCountOf(step);
    if (count == nullptr || step.shapes_vary) continue;
    if (graph.values[step.out[0]].loss_weight != 0) return count;
  }
  return nullptr;
}

void WarnOfLabelCounts(const Net& net, int passes) {
  for (const StepInfo& step : net.graph().steps) {
    if (VaryingCountOf(step) == nullptr) continue;
    const char* const field =
        step.spec.proto().loss_param().has_ignore_label() ? "ignore_label" : "class_weight";
    LOG(WARNING) << EscapeControl(
        Join(step.spec.WhereIn("loss_param", field).ToString(), ": layer '", step.spec.name(),
             "' divides the loss of each of the ", passes,
             " passes of iter_size by the labels that count in this pass (normalization: VALID "
             "with ",
             field, "), as Caffe does. An update is the mean over the passes and differs from the ",
             "update of one batch ", passes,
             " times as large; normalization: FULL or BATCH_SIZE makes them equal"));
  }
}

}  // namespace trainer
