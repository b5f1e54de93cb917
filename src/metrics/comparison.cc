#include "trainer/metrics/comparison.h"

#include <algorithm>
#include <array>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/metrics/label_consumers.h"

namespace trainer {
namespace {

// Sets columns, inner and, for labels and numbers, the axis. One axis alone is that of the records.
void SetShape(const Shape& outputs, Comparison* comparison) {
  if (outputs.Rank() <= comparison->axis) return;
  comparison->columns = outputs[comparison->axis];
  comparison->inner = outputs.Count(comparison->axis + 1);
}

// Returns the comparison of a layer that compares class labels; no value if its targets are not
// one label per row.
std::optional<Comparison> OfConsumer(const Graph& graph, const LabelConsumer& consumer) {
  const Node& node = graph.nodes[NodeId(consumer.layer)];
  const Shape &scores = graph.values[node.in[0]].shape, &labels = graph.values[node.in[1]].shape;
  if (labels.Count() * consumer.classes != scores.Count()) return std::nullopt;
  Comparison comparison;
  comparison.layer = consumer.layer;
  comparison.outputs = consumer.scores;
  comparison.targets = consumer.labels;
  comparison.axis = consumer.axis;
  comparison.has_ignore = consumer.has_ignore;
  comparison.ignore = consumer.ignore;
  SetShape(scores, &comparison);
  return comparison;
}

// Returns the comparison of a layer that compares two blobs of equal shape; no value for other
// layers.
std::optional<Comparison> OfEqualShapes(const Graph& graph, int layer) {
  const Node& node = graph.nodes[NodeId(layer)];
  const caffe::LayerParameter& proto = node.spec.proto();
  const bool labels =
      proto.type() == "SigmoidCrossEntropyLoss" || proto.type() == "SigmoidFocalLoss";
  const bool numbers =
      proto.type() == "EuclideanLoss" || proto.type() == "SmoothL1Loss" || proto.type() == "L1Loss";
  if ((!labels && !numbers) || node.in.size() != 2) return std::nullopt;
  Comparison comparison;
  comparison.kind = labels ? TargetKind::kLabels : TargetKind::kNumbers;
  comparison.layer = layer;
  comparison.outputs = proto.bottom(0);
  comparison.targets = proto.bottom(1);
  comparison.has_ignore = labels && proto.loss_param().has_ignore_label();
  comparison.ignore = static_cast<float>(proto.loss_param().ignore_label());
  SetShape(graph.values[node.in[0]].shape, &comparison);
  return comparison;
}

// Returns whether a loss takes the softmax of the scores that `consumer` compares.
bool AreLogits(const Graph& graph, const std::vector<LabelConsumer>& consumers,
               const LabelConsumer& consumer) {
  return std::ranges::any_of(consumers, [&](const LabelConsumer& one) {
    const std::string& type = graph.nodes[NodeId(one.layer)].spec.type();
    return (type == "SoftmaxWithLoss" || type == "SoftmaxFocalLoss" || type == "InfogainLoss") &&
           one.scores_from == consumer.scores_from;
  });
}

}  // namespace

std::optional<Comparison> FindComparison(const Graph& graph, const std::string& name) {
  constexpr std::array kFirst = {"Accuracy", "SoftmaxWithLoss"};
  std::optional<Comparison> found;
  size_t rank = kFirst.size() + 1;  // of `found`
  const std::vector<LabelConsumer> consumers = FindLabelConsumers(graph);
  for (const LabelConsumer& consumer : consumers) {
    const LayerSpec& layer = graph.nodes[NodeId(consumer.layer)].spec;
    const auto own = static_cast<size_t>(std::ranges::find(kFirst, layer.type()) - kFirst.begin());
    if (own >= rank || (!name.empty() && layer.name() != name)) continue;
    std::optional<Comparison> comparison = OfConsumer(graph, consumer);
    if (!comparison) continue;
    if (AreLogits(graph, consumers, consumer)) comparison->scores = ScoreKind::kLogits;
    found = comparison;
    rank = own;
  }
  if (found) return found;
  for (const TargetKind kind : {TargetKind::kLabels, TargetKind::kNumbers}) {
    for (int i = 0; i < graph.nodes.size(); ++i) {
      if (!name.empty() && graph.nodes[NodeId(i)].spec.name() != name) continue;
      std::optional<Comparison> comparison = OfEqualShapes(graph, i);
      if (comparison && comparison->kind == kind) return comparison;
    }
  }
  return std::nullopt;
}

Comparison CompareBlobs(const Graph& graph, const std::string& outputs, const std::string& targets,
                        bool wants_numbers) {
  const Shape values = graph.Find(outputs).shape, wanted = graph.Find(targets).shape;
  Comparison comparison;
  comparison.outputs = outputs;
  comparison.targets = targets;
  SetShape(values, &comparison);
  if (values == wanted && (comparison.columns > 1 || wants_numbers || values.Rank() > 1)) {
    comparison.kind = wants_numbers ? TargetKind::kNumbers : TargetKind::kLabels;
    const NodeId producer = graph.values[graph.latest_by_name.at(outputs)].producer;
    comparison.are_probabilities = graph.nodes[producer].spec.type() == "Sigmoid";
    return comparison;
  }
  if (comparison.columns > 1 && wanted.Count() * comparison.columns == values.Count()) {
    return comparison;
  }
  throw Error(
      ErrorCode::kConfig,
      Join("labels '", EscapeControl(targets), "' of shape ", wanted.ToString(),
           " do not match the scores '", EscapeControl(outputs), "' of shape ", values.ToString(),
           ": they need one label per row, with the classes on axis 1, or equal shapes"));
}

std::string Describe(const Comparison& comparison, const Graph& graph) {
  if (comparison.layer < 0) {
    return EscapeControl(Join("'", comparison.outputs, "' and '", comparison.targets, "'"));
  }
  const LayerSpec& layer = graph.nodes[NodeId(comparison.layer)].spec;
  return EscapeControl(Join("layer '", layer.name(), "' (", layer.type(), ")"));
}

}  // namespace trainer
