#include "trainer/data/transform.h"

#include <utility>

#include "pixels.h"
#include "trainer/base/error.h"
#include "trainer/base/permutation.h"
#include "trainer/base/text.h"
#include "trainer/config/schema_doc.h"
#include "trainer/data/mean_file.h"

namespace trainer {
namespace {

constexpr char kParam[] = "transform_param";

}  // namespace

std::string ImageShape::ToString() const { return Join(channels, "x", height, "x", width); }

Transform::Transform(const LayerSpec& layer, caffe::Phase phase, const PhiloxKey& key)
    : layer_(layer),
      param_(layer.proto().transform_param()),
      resize_(layer),
      random_crop_(phase == caffe::TRAIN && (param_.crop_size() > 0 || param_.crop_h() > 0)),
      key_(key),
      mean_values_(param_.mean_value().begin(), param_.mean_value().end()) {
  if (param_.force_color() && param_.force_gray()) {
    layer.FailIn(kParam, "force_gray", "force_color and force_gray cannot both be given");
  }
  if (param_.has_mean_file() && param_.mean_value_size() > 0) {
    layer.FailIn(kParam, "mean_value",
                 "mean_file and mean_value cannot both be given; remove one of them");
  }
  CheckSupported();
  if (param_.random_seed() >= 0) key_.seed = static_cast<uint64_t>(param_.random_seed());
  MeanImage mean = ReadMeanImage(layer);
  mean_path_ = mean.path;
  mean_shape_ = mean.shape;
  mean_image_ = std::move(mean.values);
}

void Transform::CheckSupported() const {
  RefuseUnsupported(layer_);
  if ((param_.crop_h() == 0) != (param_.crop_w() == 0)) {
    layer_.FailIn(kParam, param_.crop_h() == 0 ? "crop_w" : "crop_h",
                  "crop_h and crop_w belong together; give both, or crop_size");
  }
}

ImageShape Transform::OutShape(const DatumView& datum, const std::string& record) const {
  const ImageShape in{datum.channels, datum.height, datum.width};
  if (!mean_image_.empty() && mean_shape_ != in) {
    layer_.FailIn(
        kParam, "mean_file",
        Join("the mean in ", mean_path_, " is ", mean_shape_.ToString(), ", but record ", record,
             " is ", in.ToString(), "; compute the mean of this database (before cropping)"));
  }
  const int values = param_.mean_value_size();
  if (values > 1 && values != in.channels) {
    layer_.FailIn(kParam, "mean_value",
                  Join(values, " mean values for ", in.channels, " channels (record ", record,
                       " is ", in.ToString(), "); give one, or one per channel"));
  }
  const ImageShape out = Window(in);
  if (resize_.active()) {
    resize_.Check(datum, record);
    return out;
  }
  if (out.height > in.height || out.width > in.width) {
    layer_.FailIn(kParam, param_.crop_h() > 0 ? "crop_h" : "crop_size",
                  Join("a crop of ", out.height, "x", out.width, " is larger than record ", record,
                       ", which is ", in.ToString()));
  }
  return out;
}

Colors Transform::colors() const {
  if (param_.force_color()) return Colors::kColor;
  return param_.force_gray() ? Colors::kGray : Colors::kAsStored;
}

ImageShape Transform::Window(const ImageShape& in) const {
  if (param_.crop_h() > 0) return {in.channels, param_.crop_h(), param_.crop_w()};
  if (param_.crop_size() > 0) return {in.channels, param_.crop_size(), param_.crop_size()};
  return in;
}

void Transform::Apply(const DatumView& datum, uint64_t number, float* out) const {
  if (resize_.active()) {
    Image resized;
    resize_.Apply(datum, key_, number, &resized);
    Convert(resized.pixels.data(), ViewOf(resized), number, out);
  } else if (datum.bytes.empty()) {
    Convert(datum.floats.data(), datum, number, out);
  } else {
    Convert(reinterpret_cast<const uint8_t*>(datum.bytes.data()), datum, number, out);
  }
}

PixelWindow Transform::Cut(const DatumView& datum, uint64_t number, uint8_t* out) const {
  Image resized;
  DatumView from = datum;
  if (resize_.active()) {
    resize_.Apply(datum, key_, number, &resized);
    from = ViewOf(resized);
  }
  const Choice choice = Choose(from, number);
  const auto* const pixels = reinterpret_cast<const uint8_t*>(from.bytes.data());
  const PixelJob<uint8_t> job = JobOf(pixels, from, choice);
  InterleavePixels(job, out);
  return {static_cast<int32_t>(job.in - pixels), choice.mirror ? 1 : 0};
}

PixelNumbers Transform::Numbers() const {
  PixelNumbers numbers;
  numbers.scale = param_.scale();
  numbers.mean = mean_image_.empty() ? mean_values_ : mean_image_;
  if (mean_image_.empty()) return numbers;
  numbers.mean_row = mean_shape_.width;
  numbers.mean_plane = mean_shape_.height * mean_shape_.width;
  return numbers;
}

// The window of record `number`, which is `datum`.
Transform::Choice Transform::Choose(const DatumView& datum, uint64_t number) const {
  Choice choice;
  choice.shape = Window({datum.channels, datum.height, datum.width});
  const int64_t height = choice.shape.height, width = choice.shape.width;
  choice.top = (datum.height - height) / 2;
  choice.left = (datum.width - width) / 2;
  if (!param_.mirror() && !random_crop_) return choice;
  const Philox4 random = PhiloxBlock(key_, 0, number);
  choice.mirror = param_.mirror() && (random.x[0] >> 31) != 0;
  if (!random_crop_) return choice;
  choice.top = UniformBelow(random.x[1], datum.height - height + 1);
  choice.left = UniformBelow(random.x[2], datum.width - width + 1);
  return choice;
}

// The pixels of a window of `datum`, which starts at `in`; what is made of them is left open.
template <class T>
PixelJob<T> Transform::JobOf(const T* in, const DatumView& datum, const Choice& choice) {
  PixelJob<T> job;
  job.in_row = datum.width;
  job.in_plane = int64_t{datum.height} * datum.width;
  job.in = in + choice.top * job.in_row + choice.left;
  job.channels = choice.shape.channels;
  job.height = choice.shape.height;
  job.width = choice.shape.width;
  job.mirror = choice.mirror;
  return job;
}

template <class T>
void Transform::Convert(const T* in, const DatumView& datum, uint64_t number, float* out) const {
  static constexpr float kNoMean = 0;
  PixelJob<T> job = JobOf(in, datum, Choose(datum, number));
  if (!mean_image_.empty()) job.mean_image = mean_image_.data() + (job.in - in);
  job.scale = param_.scale();
  job.out = out;
  job.mean_values = mean_values_.empty() ? &kNoMean : mean_values_.data();
  job.mean_step = mean_values_.size() > 1 ? 1 : 0;
  ConvertPixels(job);
}

}  // namespace trainer
