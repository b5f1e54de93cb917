#include "trainer/metrics/label_consumers.h"

#include <algorithm>
#include <optional>

#include "trainer/layers/label_rule.h"

namespace trainer {
namespace {

// Returns the axis of the classes in the scores; no value if the layer does not compare labels.
std::optional<int> AxisOf(const caffe::LayerParameter& layer) {
  if (layer.type() == "Accuracy") return layer.accuracy_param().axis();
  if (layer.type() == "SoftmaxWithLoss") return layer.softmax_param().axis();
  if (layer.type() == "InfogainLoss") return layer.infogain_loss_param().axis();
  if (layer.type() == "HingeLoss" || layer.type() == "MultinomialLogisticLoss") return 1;
  return std::nullopt;
}

// Sets `source` and `source_top`: walks back from `layer`, through Split layers.
void FindSource(const Graph& graph, int layer, LabelConsumer* consumer) {
  std::string blob = consumer->labels;
  for (int i = layer; i-- > 0;) {
    const caffe::LayerParameter& proto = graph.nodes[NodeId(i)].spec.proto();
    const auto top = std::ranges::find(proto.top(), blob);
    if (top == proto.top().end()) continue;
    if (proto.type() == "Split") {
      blob = proto.bottom(0);
      continue;
    }
    if (proto.bottom_size() > 0) return;
    consumer->source = i;
    consumer->source_top = static_cast<int>(top - proto.top().begin());
    return;
  }
}

}  // namespace

bool LabelConsumer::Takes(float label) const {
  return LabelRule{classes, has_ignore, static_cast<int>(ignore)}.Read(label) != kBadLabel;
}

int LabelConsumer::ClassOf(float label) const {
  return std::max(LabelRule{classes, has_ignore, static_cast<int>(ignore)}.Read(label), -1);
}

std::vector<LabelConsumer> FindLabelConsumers(const Graph& graph) {
  std::vector<LabelConsumer> consumers;
  for (int i = 0; i < graph.nodes.size(); ++i) {
    const caffe::LayerParameter& layer = graph.nodes[NodeId(i)].spec.proto();
    const std::optional<int> axis = AxisOf(layer);
    if (!axis || layer.bottom_size() < 2) continue;
    LabelConsumer consumer;
    consumer.layer = i;
    consumer.scores = layer.bottom(0);
    consumer.labels = layer.bottom(1);
    const Shape shape = graph.Find(consumer.scores).shape;
    consumer.axis = shape.CanonicalAxis(*axis);
    if (consumer.axis < 0) continue;
    consumer.classes = shape[consumer.axis];
    const bool measures = layer.type() == "Accuracy";
    consumer.has_ignore = measures ? layer.accuracy_param().has_ignore_label()
                                   : layer.loss_param().has_ignore_label();
    consumer.ignore = static_cast<float>(measures ? layer.accuracy_param().ignore_label()
                                                  : layer.loss_param().ignore_label());
    FindSource(graph, i, &consumer);
    consumers.push_back(consumer);
  }
  return consumers;
}

}  // namespace trainer
