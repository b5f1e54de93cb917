#include "trainer/inference/predict/image_preprocessor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::string SizeText(int64_t height, int64_t width) { return Join(height, "x", width); }

// Returns the mean of each channel over all its pixels.
std::vector<float> ChannelMeans(const MeanImage& mean) {
  std::vector<float> means;
  const int64_t plane = mean.shape.height * mean.shape.width;
  for (int64_t c = 0; c < mean.shape.channels; ++c) {
    const auto first = mean.values.begin() + c * plane;
    means.push_back(static_cast<float>(std::accumulate(first, first + plane, 0.0) /
                                       static_cast<double>(plane)));
  }
  return means;
}

}  // namespace

ImagePreprocessor::ImagePreprocessor(const Shape& input, const PreprocessOptions& options) {
  if (!input.IsImage() || (input[1] != 1 && input[1] != 3)) {
    throw Error(ErrorCode::kConfig,
                Join("the input has the shape ", input.ToString(),
                     "; images need (N, C, H, W) with 1 channel (grey) or 3 (colour)"));
  }
  channels_ = static_cast<int>(input[1]);
  height_ = static_cast<int>(input[2]);
  width_ = static_cast<int>(input[3]);
  short_side_ = options.short_side;
  oversample_ = options.oversample;
  factor_ = options.raw_scale / 255;
  scale_ = options.scale;
  if (short_side_ > 0) {
    if (options.height > 0 || options.width > 0) {
      throw Error(ErrorCode::kUsage,
                  "--resize and --resize_short cannot both be given; leave one of them out");
    }
    SetResizedSize(short_side_, short_side_);
  } else {
    SetResizedSize(options.height > 0 ? options.height : height_,
                   options.width > 0 ? options.width : width_);
  }
  SetMean(options);
}

void ImagePreprocessor::SetResizedSize(int height, int width) {
  if (height == resized_height_ && width == resized_width_) return;
  if (height < height_ || width < width_) {
    throw Error(ErrorCode::kUsage,
                Join("images of ", SizeText(height, width), " are smaller than the net's input, ",
                     SizeText(height_, width_), "; give a larger --resize",
                     short_side_ > 0 ? "_short" : ""));
  }
  resized_height_ = height;
  resized_width_ = width;
  const int down = resized_height_ - height_, right = resized_width_ - width_;
  const Crop middle = {down / 2, right / 2, false};
  if (!oversample_) {
    crops_ = {middle};
    return;
  }
  crops_ = {{0, 0, false}, {0, right, false}, {down, 0, false}, {down, right, false}, middle};
  for (int i = 0; i < 5; ++i) {
    crops_.push_back(crops_[static_cast<size_t>(i)]);
    crops_.back().mirror = true;
  }
}

// Reduces the mean file to its channel means if it has neither the size of the input nor the size
// of the resized image. With `short_side_`, resized images have different sizes.
void ImagePreprocessor::SetMean(const PreprocessOptions& options) {
  std::vector<float> values = options.mean_values;
  if (!options.mean_file.empty()) {
    if (!values.empty()) {
      throw Error(ErrorCode::kUsage,
                  "--mean and --mean_value cannot both be given; leave one of them out");
    }
    MeanImage mean = ReadMeanFile(options.mean_file);
    if (mean.shape.channels != channels_) {
      throw Error(ErrorCode::kUsage, Join(mean.path, ": the mean is ", mean.shape.ToString(),
                                          ", but the net has ", channels_, " channels"));
    }
    mean_is_resized_ = short_side_ == 0 && mean.shape.height == resized_height_ &&
                       mean.shape.width == resized_width_;
    if (mean_is_resized_ || (mean.shape.height == height_ && mean.shape.width == width_)) {
      mean_ = std::move(mean.values);
      return;
    }
    values = ChannelMeans(mean);
  }
  if (values.empty()) values = {0};
  if (values.size() == 1) values.resize(static_cast<size_t>(channels_), values[0]);
  if (static_cast<int>(values.size()) != channels_) {
    throw Error(ErrorCode::kUsage,
                Join("--mean_value has ", values.size(), " values, but the net's input has ",
                     Counted(channels_, "channel"), "; give one, or one per channel"));
  }
  const auto plane = static_cast<size_t>(height_) * static_cast<size_t>(width_);
  for (const float value : values) mean_.insert(mean_.end(), plane, value);
}

std::vector<float> ImagePreprocessor::MeanOfFirstCrop() const {
  if (!mean_is_resized_) return mean_;
  std::vector<float> mean;
  for (int c = 0; c < channels_; ++c) {
    for (int y = 0; y < height_; ++y) {
      const int64_t row = (int64_t{c} * resized_height_ + crops_[0].top + y) * resized_width_;
      const auto first = mean_.begin() + row + crops_[0].left;
      mean.insert(mean.end(), first, first + width_);
    }
  }
  return mean;
}

void ImagePreprocessor::Read(const std::string& path, std::vector<float>* out) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  raw_ = ReadFile(path, kMaxBytes);
  DecodeImage(raw_, channels_ == 1 ? ColorMode::kGray : ColorMode::kColor, {path}, "the file",
              &decoded_, BitDepth::kFloats);
  AppendCrops(path, out);
}

void ImagePreprocessor::Prepare(const Image& image, std::vector<float>* out) {
  decoded_ = image;
  AppendCrops("", out);
}

void ImagePreprocessor::AppendCrops(const std::string& path, std::vector<float>* out) {
  if (short_side_ > 0) ResizeShortSide(path);
  const bool fits = decoded_.height == resized_height_ && decoded_.width == resized_width_;
  if (fits) {
    std::swap(decoded_, resized_);
  } else {
    ResizeImage(decoded_, {0, 0, decoded_.width, decoded_.height}, resized_height_, resized_width_,
                &resized_);
  }
  const size_t item =
      static_cast<size_t>(channels_) * static_cast<size_t>(height_) * static_cast<size_t>(width_);
  const size_t start = out->size();
  out->resize(start + item * crops_.size());
  for (size_t i = 0; i < crops_.size(); ++i) CopyCrop(crops_[i], out->data() + start + i * item);
}

void ImagePreprocessor::ResizeShortSide(const std::string& path) {
  const double factor =
      static_cast<double>(short_side_) / std::min(decoded_.height, decoded_.width);
  const int64_t height = std::llround(decoded_.height * factor),
                width = std::llround(decoded_.width * factor);
  if (height > kMaxPixels / width) {
    throw Error(ErrorCode::kData, {path},
                Join("the image is ", SizeText(decoded_.height, decoded_.width),
                     " pixels and would become ", SizeText(height, width),
                     ", which is too large; leave it out, or crop it"));
  }
  SetResizedSize(static_cast<int>(height), static_cast<int>(width));
}

void ImagePreprocessor::CopyCrop(const Crop& crop, float* out) const {
  const bool floats = !resized_.floats.empty();
  size_t at = 0;
  for (int c = 0; c < channels_; ++c) {
    for (int y = 0; y < height_; ++y) {
      const int64_t row =
          (int64_t{c} * resized_height_ + crop.top + y) * resized_width_ + crop.left;
      for (int x = 0; x < width_; ++x, ++at) {
        const auto from = static_cast<size_t>(row + (crop.mirror ? width_ - 1 - x : x));
        const float mean = mean_[mean_is_resized_ ? from : at];
        const float pixel =
            floats ? resized_.floats[from] : static_cast<float>(resized_.pixels[from]);
        out[at] = (pixel * factor_ - mean) * scale_;
      }
    }
  }
}

InputBlob ImageInput(const Net& net) {
  const std::vector<InputBlob> inputs = InputBlobs(net);
  if (inputs.size() == 1) return inputs[0];
  throw Error(
      ErrorCode::kConfig,
      Join("net '", EscapeControl(net.graph().name), "' has ", inputs.size(),
           " inputs, but images need exactly one Input layer with one top",
           inputs.empty() ? "; 'trainer deploy' makes such a net from a training net" : ""));
}

namespace {

// Fills batches with the crops of images. A batch may end between two crops of one image.
class ImageFileSource final : public BlobSource {
 public:
  ImageFileSource(ImagePaths paths, const PreprocessOptions& options, const Net& net)
      : paths_(std::move(paths)), preprocessor_(ImageInput(net).value.shape, options) {}

  // Reads images until the batch is full, and keeps the remaining crops for the next batch.
  int64_t Fill(const Net& net) override {
    const InputBlob input = ImageInput(net);
    const auto whole = static_cast<size_t>(input.value.Count());
    std::string path;
    while (pending_.size() < whole && !is_at_end_) {
      is_at_end_ = !paths_.Next(&path);
      if (!is_at_end_) preprocessor_.Read(path, &pending_);
    }
    const size_t taken = std::min(pending_.size(), whole);
    std::vector<float> batch(whole, 0.0f);
    std::copy_n(pending_.begin(), taken, batch.begin());
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(taken));
    net.WriteNchw(batch, input.value);
    return static_cast<int64_t>(taken) / input.value.shape.Count(1);
  }

 private:
  ImagePaths paths_;
  ImagePreprocessor preprocessor_;
  bool is_at_end_ = false;
  std::vector<float> pending_;  // crops that do not fit into the current batch
};

}  // namespace

std::unique_ptr<BlobSource> MakeImageSource(ImagePaths paths, const PreprocessOptions& options,
                                            const Net& net) {
  return std::make_unique<ImageFileSource>(std::move(paths), options, net);
}

}  // namespace trainer
