#include "trainer/inference/evaluate/top_losses.h"

#include <algorithm>
#include <functional>

namespace trainer {
namespace {

// Returns whether a blob has four axes, 1 or 3 channels, and more than one row and column.
bool LooksLikeImages(const Shape& shape) {
  return shape.IsImage() && (shape[1] == 1 || shape[1] == 3) && shape[2] > 1 && shape[3] > 1;
}

// Returns the first output with images of a layer without inputs; no value for other layers.
std::optional<Tensor> ImagesOfLayer(const Net& net, const Node& layer) {
  if (!layer.in.empty()) return std::nullopt;
  for (const ValueId out : layer.out) {
    if (const Tensor value = net.Value(out); LooksLikeImages(value.shape)) return value;
  }
  return std::nullopt;
}

}  // namespace

void TopLosses::Add(const Net& net, const ConstTensor& images, int64_t labels,
                    const std::vector<Prediction>& predictions) {
  if (images.shape[0] != labels) return;
  std::vector<float> values;  // read only if this batch has one of the highest losses
  const int64_t each = images.shape.Count(1);
  for (const Prediction& prediction : predictions) {
    const bool full = images_.size() >= max_;
    if (full && (max_ == 0 || !(prediction.loss > images_.back().prediction.loss))) continue;
    if (values.empty()) {
      values.resize(static_cast<size_t>(images.Count()));
      net.ReadNchw(images, values);
    }
    if (full) images_.pop_back();
    const auto first = values.begin() + prediction.index * each;
    TopLoss image{
        records_ + prediction.index, prediction, images.shape.With(0, 1), {first, first + each}};
    const auto place =
        std::ranges::upper_bound(images_, prediction.loss, std::greater<>(),
                                 [](const TopLoss& other) { return other.prediction.loss; });
    images_.insert(place, std::move(image));
  }
  records_ += labels;
}

std::optional<Tensor> FindImages(const Net& net, const LabelConsumer* consumer) {
  const Graph& graph = net.graph();
  if (consumer != nullptr && consumer->source >= 0) {
    if (auto images = ImagesOfLayer(net, graph.nodes[NodeId(consumer->source)])) return images;
  }
  for (const Node& node : graph.nodes) {
    if (auto images = ImagesOfLayer(net, node)) return images;
  }
  return std::nullopt;
}

}  // namespace trainer
