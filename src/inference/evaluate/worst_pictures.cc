#include "trainer/inference/worst_pictures.h"

#include <algorithm>
#include <functional>

namespace trainer {
namespace {

bool LooksLikeImages(const Shape& shape) {
  return shape.IsImage() && (shape[1] == 1 || shape[1] == 3) && shape[2] > 1 && shape[3] > 1;
}

const Tensor* ImagesOfLayer(const Net& net, int layer) {
  const caffe::LayerParameter& proto = net.LayerAt(layer).proto();
  if (proto.bottom_size() > 0) return nullptr;
  for (int top = 0; top < proto.top_size(); ++top) {
    if (LooksLikeImages(net.Output(layer, top).shape)) return &net.Output(layer, top);
  }
  return nullptr;
}

}  // namespace

void WorstPictures::Add(const Net& net, const ConstTensor& images, int64_t labels,
                        const std::vector<LabelAnswer>& answers) {
  if (images.shape[0] != labels) return;
  std::vector<float> numbers;  // read where the batch has one of the worst
  const int64_t each = images.shape.Count(1);
  for (const LabelAnswer& answer : answers) {
    const bool full = pictures_.size() >= most_;
    if (full && (most_ == 0 || !(answer.loss > pictures_.back().answer.loss))) continue;
    if (numbers.empty()) {
      numbers.resize(static_cast<size_t>(images.Count()));
      net.ReadPlain(images, numbers);
    }
    if (full) pictures_.pop_back();
    const auto first = numbers.begin() + answer.place * each;
    WorstPicture picture{
        records_ + answer.place, answer, images.shape.With(0, 1), {first, first + each}};
    const auto place =
        std::ranges::upper_bound(pictures_, answer.loss, std::greater<>(),
                                 [](const WorstPicture& other) { return other.answer.loss; });
    pictures_.insert(place, std::move(picture));
  }
  records_ += labels;
}

const Tensor* ImagesOf(const Net& net, const LabelUse* use) {
  if (use != nullptr && use->source >= 0) {
    if (const Tensor* const images = ImagesOfLayer(net, use->source)) return images;
  }
  for (int i = 0; i < net.NumLayers(); ++i) {
    if (const Tensor* const images = ImagesOfLayer(net, i)) return images;
  }
  return nullptr;
}

}  // namespace trainer
