#include "trainer/input/transform.h"

#include "mixup.h"
#include "pixel_copy.h"
#include "trainer/base/error/error.h"
#include "trainer/base/random/permutation.h"
#include "trainer/base/text/text.h"
#include "trainer/config/schema_doc.h"

namespace trainer {
namespace {

constexpr char kTransformParam[] = "transform_param";

// Returns the layer's transform_param, without `mirror` if data_param forbids random changes.
caffe::TransformationParameter ParamOf(const LayerSpec& layer) {
  caffe::TransformationParameter param = layer.proto().transform_param();
  if (!layer.proto().data_param().augment()) param.clear_mirror();
  return param;
}

// Returns the phase whose random changes a layer of `phase` makes.
caffe::Phase RandomPhase(const LayerSpec& layer, caffe::Phase phase) {
  return layer.proto().data_param().augment() ? phase : caffe::TEST;
}

}  // namespace

Transform::Transform(const LayerSpec& layer, caffe::Phase phase, const PhiloxKey& key)
    : layer_(layer),
      param_(ParamOf(layer)),
      resize_(layer, RandomPhase(layer, phase)),
      augment_(layer, RandomPhase(layer, phase)),
      draws_(layer.proto().data_param().augment()),
      random_crop_(draws_ && phase == caffe::TRAIN &&
                   (param_.crop_size() > 0 || param_.crop_h() > 0)),
      mixes_(draws_ && phase == caffe::TRAIN && (param_.mixup() > 0 || param_.cutmix() > 0)),
      key_(key),
      mean_values_(param_.mean_value().begin(), param_.mean_value().end()) {
  if (param_.force_color() && param_.force_gray()) {
    layer.FailIn(kTransformParam, "force_gray", "force_color and force_gray cannot both be given");
  }
  if (param_.has_mean_file() && param_.mean_value_size() > 0) {
    layer.FailIn(kTransformParam, "mean_value",
                 "mean_file and mean_value cannot both be given; remove one of them");
  }
  CheckSupported();
  if (phase == caffe::TEST) crops_ = static_cast<int>(param_.test_crops());
  if (param_.random_seed() >= 0) key_.seed = static_cast<uint64_t>(param_.random_seed());
  mean_ = ReadMeanImage(layer);
}

void Transform::CheckSupported() const {
  RefuseUnsupported(layer_);
  if ((param_.crop_h() == 0) != (param_.crop_w() == 0)) {
    layer_.FailIn(kTransformParam, param_.crop_h() == 0 ? "crop_w" : "crop_h",
                  "crop_h and crop_w need each other; give both, or crop_size");
  }
  const uint32_t crops = param_.test_crops();
  if (crops != 1 && crops != 5 && crops != 10) {
    layer_.FailIn(kTransformParam, "test_crops",
                  Join("test_crops is ", crops, "; it must be 1, 5 or 10"));
  }
  if (crops > 1 && param_.crop_size() == 0 && param_.crop_h() == 0) {
    layer_.FailIn(kTransformParam, "test_crops",
                  "test_crops needs crop_size, the size of the crops");
  }
  CheckMixing();
}

void Transform::CheckMixing() const {
  constexpr float kMostAlpha = 100;
  constexpr uint32_t kMostClasses = 1u << 20;
  const auto check = [&](const char* field, float alpha, const char* example) {
    if (!(alpha >= 0 && alpha <= kMostAlpha)) {
      layer_.FailIn(
          kTransformParam, field,
          Join(field, " is ", alpha, "; it must be 0 to ", kMostAlpha, ", e.g. ", example));
    }
    const uint32_t classes = param_.mixup_classes();
    if (alpha > 0 && (classes < 2 || classes > kMostClasses)) {
      layer_.FailIn(kTransformParam, field,
                    Join(field, " needs mixup_classes, the number of classes; it is ", classes,
                         ". Each label becomes one share per class"));
    }
  };
  check("mixup", param_.mixup(), "0.2");
  check("cutmix", param_.cutmix(), "1");
  if (!(param_.switch_prob() >= 0 && param_.switch_prob() <= 1)) {
    layer_.FailIn(kTransformParam, "switch_prob",
                  Join("switch_prob is ", param_.switch_prob(),
                       "; it must be 0 (only mixup) to 1 (only cutmix)"));
  }
}

ImageShape Transform::OutShape(const DatumView& datum, const std::string& record) const {
  const ImageShape in{datum.channels, datum.height, datum.width};
  if (!mean_.values.empty() && mean_.shape != in) {
    layer_.FailIn(
        kTransformParam, "mean_file",
        Join("the mean in ", mean_.path, " is ", mean_.shape.ToString(), ", but record ", record,
             " is ", in.ToString(), "; compute the mean of this database (before cropping)"));
  }
  const int values = param_.mean_value_size();
  if (values > 1 && values != in.channels) {
    layer_.FailIn(kTransformParam, "mean_value",
                  Join(values, " mean values for ", in.channels, " channels (record ", record,
                       " is ", in.ToString(), "); give one, or one per channel"));
  }
  const ImageShape out = Window(in);
  augment_.Check(datum, out, record);
  if (resize_.active()) {
    resize_.Check(datum, record);
    return out;
  }
  if (out.height > in.height || out.width > in.width) {
    layer_.FailIn(kTransformParam, param_.crop_h() > 0 ? "crop_h" : "crop_size",
                  Join("a crop of ", out.height, "x", out.width, " is larger than record ", record,
                       ", which is ", in.ToString()));
  }
  return out;
}

ColorMode Transform::colors() const {
  if (param_.force_color()) return ColorMode::kColor;
  return param_.force_gray() ? ColorMode::kGray : ColorMode::kAsStored;
}

ImageShape Transform::Window(const ImageShape& in) const {
  if (param_.crop_h() > 0) return {in.channels, param_.crop_h(), param_.crop_w()};
  if (param_.crop_size() > 0) return {in.channels, param_.crop_size(), param_.crop_size()};
  return in;
}

CropRequest Transform::CropFor(int height, int width, uint64_t number) const {
  const CropRequest whole{{0, 0, width, height}};
  if (resize_.active()) {
    const RandomResize::Choice choice = resize_.Choose(height, width, key_, draws_ ? number : 0);
    return {choice.box, choice.height, choice.width};
  }
  const ImageShape in{1, height, width};
  const ImageShape out = Window(in);
  const bool fits = out.height <= height && out.width <= width;
  if (crops_ > 1 || !mean_.values.empty() || !fits) return whole;
  const Crop window = DrawCrop(in, number, 0);
  return {{static_cast<int>(window.left), static_cast<int>(window.top), static_cast<int>(out.width),
           static_cast<int>(out.height)}};
}

// The record as it is resized at random, or itself.
DatumView Transform::Resized(const DatumView& datum, uint64_t number, Image* to) const {
  if (!resize_.active()) return datum;
  const RandomResize::Choice choice =
      resize_.Choose(datum.height, datum.width, key_, draws_ ? number : 0);
  RandomResize::Apply(datum, choice, to);
  return ViewOf(*to);
}

void Transform::ToFloats(const DatumView& datum, uint64_t number, float* out) const {
  Image resized, changed;
  DatumView from = Resized(datum, number, &resized);
  for (int crop = 0; crop < crops_; ++crop) {
    const Crop window = DrawCrop({from.channels, from.height, from.width}, number, crop);
    if (from.bytes.empty()) {
      Convert(from.floats.data(), from, window, out);
    } else {
      Augmented(from, window, number, &changed, &from);
      Convert(reinterpret_cast<const uint8_t*>(from.bytes.data()), from, window, out);
    }
    out += window.shape.Count();
  }
}

void Transform::CropBytes(const DatumView& datum, uint64_t number, uint8_t* out,
                          CropOffset* offsets) const {
  Image resized, changed;
  DatumView from = Resized(datum, number, &resized);
  for (int crop = 0; crop < crops_; ++crop) {
    const Crop window = DrawCrop({from.channels, from.height, from.width}, number, crop);
    Augmented(from, window, number, &changed, &from);
    InterleavePixels(CopyOf(reinterpret_cast<const uint8_t*>(from.bytes.data()), from, window),
                     out);
    out += window.shape.Count();
    offsets[crop] = {static_cast<int32_t>(window.top * from.width + window.left),
                     window.mirror ? 1 : 0};
  }
}

// Where images are changed at random: a copy of the record, changed in the window.
void Transform::Augmented(const DatumView& datum, const Crop& window, uint64_t number,
                          Image* changed, DatumView* from) const {
  if (!augment_.active()) return;
  changed->pixels.assign(datum.bytes.begin(), datum.bytes.end());
  const PixelCopy<uint8_t> copy = CopyOf(changed->pixels.data(), datum, window);
  PixelSpan part;
  part.row = copy.in_row;
  part.plane = copy.in_plane;
  part.pixels = changed->pixels.data() + (copy.in - changed->pixels.data());
  part.channels = datum.channels;
  part.height = window.shape.height;
  part.width = window.shape.width;
  augment_.Apply(key_, number, part);
  from->bytes = {reinterpret_cast<const char*>(changed->pixels.data()), changed->pixels.size()};
}

void Transform::Mix(const ImageShape& image, std::span<const uint64_t> numbers,
                    std::span<float> images, std::span<float> labels) const {
  std::vector<float> mix_weights(numbers.size());
  std::vector<CutBox> cut_boxes(numbers.size());
  MixLabels(image, numbers, mix_weights, cut_boxes, labels);
  MixImages(mix_weights, cut_boxes, image.width, image.channels, images);
}

void Transform::MixLabels(const ImageShape& image, std::span<const uint64_t> numbers,
                          std::span<float> mix_weights, std::span<CutBox> cut_boxes,
                          std::span<float> labels) const {
  const MixOptions options{param_.mixup(), param_.cutmix(), param_.switch_prob()};
  const std::vector<ImageMix> mixes = DrawMixes(key_, options, numbers, image.height, image.width);
  std::vector<float> label_weights(mixes.size());
  for (size_t i = 0; i < mixes.size(); ++i) {
    mix_weights[i] = mixes[i].pixel_weight;
    label_weights[i] = mixes[i].label_weight;
    cut_boxes[i] = mixes[i].box;
  }
  SpreadLabels(mix_classes(), labels);
  MixItems(label_weights, labels);
}

Normalization Transform::normalization() const {
  Normalization numbers;
  numbers.scale = param_.scale();
  numbers.mixed = mixes_;
  numbers.cut = mixes_ && param_.cutmix() > 0;
  numbers.mean = mean_.values.empty() ? mean_values_ : mean_.values;
  if (mean_.values.empty()) return numbers;
  numbers.mean_row = mean_.shape.width;
  numbers.mean_plane = mean_.shape.height * mean_.shape.width;
  return numbers;
}

// The window of record `number`, which has the shape `in`.
Transform::Crop Transform::DrawCrop(const ImageShape& in, uint64_t number, int crop) const {
  constexpr int kMiddle = 4, kPlaces = 5;
  Crop window;
  window.shape = Window(in);
  const int64_t height = window.shape.height, width = window.shape.width;
  window.top = (in.height - height) / 2;
  window.left = (in.width - width) / 2;
  if (crops_ > 1) {
    window.mirror = crop >= kPlaces;
    const int place = crop % kPlaces;
    if (place == kMiddle) return window;
    window.top = place < 2 ? 0 : in.height - height;
    window.left = place % 2 == 0 ? 0 : in.width - width;
    return window;
  }
  if (!param_.mirror() && !random_crop_) return window;
  const Philox4 random = PhiloxBlock(key_, 0, number);
  window.mirror = param_.mirror() && (random.x[0] >> 31) != 0;
  if (!random_crop_) return window;
  window.top = UniformBelow(random.x[1], in.height - height + 1);
  window.left = UniformBelow(random.x[2], in.width - width + 1);
  return window;
}

// Describes the pixels of a window of `datum`, which starts at `in`; the caller sets the output.
template <class T>
PixelCopy<T> Transform::CopyOf(const T* in, const DatumView& datum, const Crop& window) {
  const DatumView::Part held = datum.Held();
  PixelCopy<T> job;
  job.in_row = held.width;
  job.in_plane = int64_t{held.height} * held.width;
  job.in = in + (window.top - held.top) * job.in_row + (window.left - held.left);
  job.channels = window.shape.channels;
  job.height = window.shape.height;
  job.width = window.shape.width;
  job.mirror = window.mirror;
  return job;
}

template <class T>
void Transform::Convert(const T* in, const DatumView& datum, const Crop& window, float* out) const {
  static constexpr float kNoMean = 0;
  PixelCopy<T> job = CopyOf(in, datum, window);
  if (!mean_.values.empty()) job.mean_image = mean_.values.data() + (job.in - in);
  job.scale = param_.scale();
  job.out = out;
  job.mean_values = mean_values_.empty() ? &kNoMean : mean_values_.data();
  job.mean_step = mean_values_.size() > 1 ? 1 : 0;
  ConvertPixels(job);
}

}  // namespace trainer
