#include "data/weight_images.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "shared/blob_shapes.h"
#include "shared/checks.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/named_file.h"
#include "trainer/image/image.h"

namespace trainer {
namespace {

constexpr char kPictureWeightsParam[] = "parameter_param";
constexpr char kNumber[] = "%d";
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

}  // namespace

WeightImage::WeightImage(const LayerSpec& spec) : param_(spec.proto().parameter_param()) {
  if (param_.has_shape()) shape_ = ShapeOf(spec, kPictureWeightsParam, "shape", param_.shape());
  if (param_.has_image()) ReadInitialImage(spec);
  if (param_.has_image() || param_.has_picture() || param_.mean_value_size() > 0) CheckShape(spec);
  if (param_.has_picture() && !param_.picture().ends_with(".png")) {
    spec.FailIn(
        kPictureWeightsParam, "picture",
        Join("picture is '", EscapeControl(param_.picture()), "'; the file name must end in .png"));
  }
}

void WeightImage::CheckShape(const LayerSpec& spec) const {
  const bool is_picture =
      shape_.Rank() == 4 && shape_[0] == 1 && (shape_[1] == 1 || shape_[1] == 3);
  if (param_.has_shape() && !is_picture) {
    spec.FailIn(
        kPictureWeightsParam, "shape",
        Join("shape is ", Dims(shape_), "; an image must have shape (1, 1, H, W) or (1, 3, H, W)"));
  }
  const int means = param_.mean_value_size();
  if (is_picture && means > 1 && means != shape_[1]) {
    spec.FailIn(kPictureWeightsParam, "mean_value",
                Join("mean_value is given ", means, " times for ", shape_[1],
                     " channels; give one, or one per channel"));
  }
}

void WeightImage::ReadInitialImage(const LayerSpec& spec) {
  if (param_.has_filler()) {
    spec.FailIn(kPictureWeightsParam, "filler",
                "filler and image are both given; keep one of them");
  }
  const bool gray = shape_.Rank() == 4 && shape_[1] == 1;
  Image image = ReadNamedFile(
      spec, kPictureWeightsParam, "image", param_.image(), [&](const std::string& path) {
        Image decoded;
        DecodeImage(ReadFile(path, kMaxBytes), gray ? ColorMode::kGray : ColorMode::kColor, {path},
                    "the picture", &decoded);
        return decoded;
      });
  if (!param_.has_shape()) shape_ = {1, image.channels, image.height, image.width};
  CheckShape(spec);
  const auto height = static_cast<int>(shape_[2]), width = static_cast<int>(shape_[3]);
  if (image.height != height || image.width != width) {
    Image resized;
    ResizeImage(image, {0, 0, image.width, image.height}, height, width, &resized,
                Interpolation::kSmooth);
    std::swap(image, resized);
  }
  start_.resize(image.pixels.size());
  for (size_t i = 0; i < start_.size(); ++i) {
    start_[i] = image.pixels[i] - MeanOf(static_cast<int64_t>(i) / image.Plane());
  }
}

float WeightImage::MeanOf(int64_t channel) const {
  const int means = param_.mean_value_size();
  if (means == 0) return 0;
  return param_.mean_value(means == 1 ? 0 : static_cast<int>(channel));
}

std::string WeightImage::FileOf(int iter) const {
  std::string name = FileNameOf(param_.picture());
  const size_t at = name.find(kNumber);
  if (at != std::string::npos) name.replace(at, sizeof(kNumber) - 1, Join(iter));
  return name;
}

std::string WeightImage::FindIn(const std::string& folder) const {
  const std::string name = FileNameOf(param_.picture());
  const size_t at = name.find(kNumber);
  if (at == std::string::npos) {
    const std::string path = JoinPath(folder, name);
    return Exists(path) ? path : "";
  }
  const std::string head = name.substr(0, at), tail = name.substr(at + sizeof(kNumber) - 1);
  std::error_code failed;
  std::filesystem::directory_iterator entry(folder, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const std::string found = entry->path().filename().string();
    if (found.size() <= head.size() + tail.size() || !found.starts_with(head) ||
        !found.ends_with(tail)) {
      continue;
    }
    const std::string number = found.substr(head.size(), found.size() - head.size() - tail.size());
    if (number.find_first_not_of("0123456789") == std::string::npos) return JoinPath(folder, found);
  }
  return "";
}

void WeightImage::Write(std::span<const float> weights, const std::string& path) const {
  Image image;
  image.channels = static_cast<int>(shape_[1]);
  image.height = static_cast<int>(shape_[2]);
  image.width = static_cast<int>(shape_[3]);
  image.pixels.resize(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const float value = weights[i] + MeanOf(static_cast<int64_t>(i) / image.Plane());
    // std::max returns its first argument if `value` is NaN; lround is not defined for NaN.
    image.pixels[i] = static_cast<uint8_t>(std::lround(std::min(std::max(0.0f, value), 255.0f)));
  }
  WriteWhole(path, EncodeImage(image, "png"));
}

}  // namespace trainer
