#include "trainer/metrics/label_consumers.h"

#include <algorithm>
#include <optional>

#include "trainer/layers/label_rule.h"

namespace trainer {
namespace {

// Returns the axis of the classes in the scores; no value if the layer does not compare labels.
std::optional<int> AxisOf(const caffe::LayerParameter& layer) {
  if (layer.type() == "Accuracy") return layer.accuracy_param().axis();
  if (layer.type() == "SoftmaxWithLoss" || layer.type() == "SoftmaxFocalLoss") {
    return layer.softmax_param().axis();
  }
  if (layer.type() == "InfogainLoss") return layer.infogain_loss_param().axis();
  if (layer.type() == "HingeLoss" || layer.type() == "MultinomialLogisticLoss") return 1;
  return std::nullopt;
}

// Returns the layer that produces a bottom of `layer`, and the output number there: walks back
// through Split layers. The layer is -1 if none does.
LabelConsumer::Producer ProducerOf(const Graph& graph, int layer, std::string blob) {
  for (int i = layer; i-- > 0;) {
    const caffe::LayerParameter& proto = graph.nodes[NodeId(i)].spec.proto();
    const auto top = std::ranges::find(proto.top(), blob);
    if (top == proto.top().end()) continue;
    if (proto.type() != "Split") return {i, static_cast<int>(top - proto.top().begin())};
    blob = proto.bottom(0);
  }
  return {};
}

LabelRule RuleOf(const LabelConsumer& consumer) {
  return {consumer.classes, consumer.has_ignore, static_cast<int>(consumer.ignore)};
}

}  // namespace

bool LabelConsumer::Takes(float label) const { return RuleOf(*this).Read(label) != kBadLabel; }

int LabelConsumer::ClassOf(float label) const { return std::max(RuleOf(*this).Read(label), -1); }

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
    consumer.scores_from = ProducerOf(graph, i, consumer.scores);
    const LabelConsumer::Producer data = ProducerOf(graph, i, consumer.labels);
    if (data.layer >= 0 && graph.nodes[NodeId(data.layer)].spec.proto().bottom_size() == 0) {
      consumer.source = data.layer;
      consumer.source_top = data.top;
    }
    consumers.push_back(consumer);
  }
  return consumers;
}

}  // namespace trainer
