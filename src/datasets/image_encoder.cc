#include "image_encoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "datum.pb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The part of a name after its last dot, in small letters.
std::string TypeOf(const std::string& path) {
  const std::string name = FileNameOf(path);
  const size_t dot = name.rfind('.');
  const std::string type = dot == std::string::npos ? "" : LowerCase(name.substr(dot + 1));
  return type == "jpeg" ? "jpg" : type;
}

bool IsBadFile(ErrorCode code) {
  return code == ErrorCode::kData || code == ErrorCode::kNoInput ||
         code == ErrorCode::kNoPermission;
}

// The picture in the middle of a black one.
Image Padded(const Image& image, int height, int width) {
  Image padded{image.channels, height, width, {}};
  padded.pixels.resize(static_cast<size_t>(image.channels) * static_cast<size_t>(padded.Plane()));
  const int top = (height - image.height) / 2, left = (width - image.width) / 2;
  for (int c = 0; c < image.channels; ++c) {
    for (int y = 0; y < image.height; ++y) {
      const uint8_t* const row = image.pixels.data() + c * image.Plane() + int64_t{y} * image.width;
      std::copy_n(row, image.width,
                  padded.pixels.data() + c * padded.Plane() + int64_t{y + top} * width + left);
    }
  }
  return padded;
}

}  // namespace

ImageEncoder::ImageEncoder(const ImagesOptions& options, std::string where)
    : options_(options), where_(std::move(where)) {
  reading_.root = options.root;
  if (!reading_.root.empty() && reading_.root.back() != '/') reading_.root += '/';
  reading_.colors = options.gray ? ColorMode::kGray : ColorMode::kColor;
}

void ImageEncoder::Convert(const ListedImage& listed, EncodedImage* to) const try {
  to->problem.clear();
  LoadListedImage(where_, listed, reading_, &to->raw, &to->image);
  const Image& image = to->image;
  const std::pair before(image.height, image.width);
  Fit(listed, &to->image);
  to->height = image.height;
  to->width = image.width;
  caffe::Datum datum;
  datum.set_label(listed.label);
  if (options_.encoded || !options_.encode_type.empty()) {
    datum.set_encoded(true);
    datum.set_data(Encoded(listed, before != std::pair(image.height, image.width), *to));
  } else {
    datum.set_channels(image.channels);
    datum.set_height(image.height);
    datum.set_width(image.width);
    datum.set_data(image.pixels.data(), image.pixels.size());
  }
  datum.SerializeToString(&to->record.value);
} catch (const Error& error) {
  if (!IsBadFile(error.code())) throw;
  to->problem = error.what();
}

void ImageEncoder::Fit(const ListedImage& listed, Image* image) const {
  if (options_.height == 0) return;
  int64_t height = options_.height, width = options_.width;
  if (options_.fit != ImageFit::kExact) {
    const double tall = static_cast<double>(height) / image->height;
    const double wide = static_cast<double>(width) / image->width;
    const double factor =
        options_.fit == ImageFit::kPad ? std::min(tall, wide) : std::max(tall, wide);
    height = std::max<int64_t>(std::llround(image->height * factor), 1);
    width = std::max<int64_t>(std::llround(image->width * factor), 1);
  }
  if (height > kMaxPixels / width) {
    throw Error(ErrorCode::kData, {where_, listed.line},
                Join("the image of ", image->width, "x", image->height, " pixels would become ",
                     width, "x", height, "; the limit is ", kMaxPixels, " pixels"));
  }
  if (height != image->height || width != image->width) {
    Image resized;
    ResizeImage(*image, {0, 0, image->width, image->height}, static_cast<int>(height),
                static_cast<int>(width), &resized);
    *image = std::move(resized);
  }
  if (options_.fit != ImageFit::kPad) return;
  if (height == options_.height && width == options_.width) return;
  *image = Padded(*image, options_.height, options_.width);
}

// The file as it is where that gives the wanted picture.
std::string ImageEncoder::Encoded(const ListedImage& listed, bool resized,
                                  const EncodedImage& from) const {
  const std::string type = TypeOf(listed.path);
  const std::string& wanted = options_.encode_type.empty() ? type : options_.encode_type;
  if (!resized && type == wanted) {
    Image stored;
    DecodeImage(from.raw, ColorMode::kAsStored, {where_, listed.line}, "the image", &stored);
    if (stored.pixels == from.image.pixels) return from.raw;  // not where it is turned upright
  }
  const bool is_netpbm = wanted == "pgm" || wanted == "ppm";  // not encoded; PNG loses nothing
  return EncodeImage(from.image, is_netpbm ? "png" : wanted, options_.quality);
}

}  // namespace trainer
