#include "trainer/inference/label_uses.h"

#include <algorithm>
#include <optional>

#include "trainer/layers/label_rule.h"

namespace trainer {
namespace {

// The axis of the classes as the layer says it; nothing for a layer that compares no labels.
std::optional<int> AxisOf(const caffe::LayerParameter& layer) {
  if (layer.type() == "Accuracy") return layer.accuracy_param().axis();
  if (layer.type() == "SoftmaxWithLoss") return layer.softmax_param().axis();
  if (layer.type() == "InfogainLoss") return layer.infogain_loss_param().axis();
  if (layer.type() == "HingeLoss" || layer.type() == "MultinomialLogisticLoss") return 1;
  return std::nullopt;
}

// Which output of which layer before `layer` is the blob; past Split layers.
void FindSource(const Net& net, int layer, LabelUse* use) {
  std::string blob = use->labels;
  for (int i = layer; i-- > 0;) {
    const caffe::LayerParameter& proto = net.LayerAt(i).proto();
    const auto top = std::ranges::find(proto.top(), blob);
    if (top == proto.top().end()) continue;
    if (proto.type() == "Split") {
      blob = proto.bottom(0);
      continue;
    }
    if (proto.bottom_size() > 0) return;
    use->source = i;
    use->source_top = static_cast<int>(top - proto.top().begin());
    return;
  }
}

}  // namespace

bool LabelUse::Takes(float label) const {
  return LabelRule{classes, has_ignore, static_cast<int>(ignore)}.Read(label) != kBadLabel;
}

std::vector<LabelUse> LabelUses(const Net& net) {
  std::vector<LabelUse> uses;
  for (int i = 0; i < net.NumLayers(); ++i) {
    const caffe::LayerParameter& layer = net.LayerAt(i).proto();
    const std::optional<int> axis = AxisOf(layer);
    if (!axis || layer.bottom_size() < 2) continue;
    LabelUse use;
    use.layer = i;
    use.scores = layer.bottom(0);
    use.labels = layer.bottom(1);
    const Shape shape = net.Value(use.scores).shape;
    use.axis = shape.CanonicalAxis(*axis);
    if (use.axis < 0) continue;
    use.classes = shape[use.axis];
    const bool measures = layer.type() == "Accuracy";
    use.has_ignore = measures ? layer.accuracy_param().has_ignore_label()
                              : layer.loss_param().has_ignore_label();
    use.ignore = static_cast<float>(measures ? layer.accuracy_param().ignore_label()
                                             : layer.loss_param().ignore_label());
    FindSource(net, i, &use);
    uses.push_back(use);
  }
  return uses;
}

}  // namespace trainer
