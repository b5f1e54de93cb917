#include "trainer/input/image_list.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/text_file.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

ListedImage ParseLine(const std::string& list, std::string_view text, int line) {
  const size_t blank = text.find_last_of(kBlanks);
  const std::string_view word =
      blank == std::string_view::npos ? std::string_view() : text.substr(blank + 1);
  const std::optional<int32_t> label = ParseNumber<int32_t>(word);
  if (!label) {
    throw Error(ErrorCode::kData, {list, line},
                Join(word.empty() ? "no label" : "the label is not a 32-bit integer", " in '",
                     EscapeControl(text.substr(0, 200)),
                     "'; each line must be a path, a space and an integer label"));
  }
  return {std::string(Trim(text.substr(0, blank))), *label, line, 0};
}

// (height, width) of the picture after resizing.
std::pair<int64_t, int64_t> WantedSize(const ImageFileOptions& reading, const Image& image) {
  if (reading.height > 0) return {reading.height, reading.width};
  const double factor =
      static_cast<double>(reading.short_side) / std::min(image.height, image.width);
  return {std::llround(image.height * factor), std::llround(image.width * factor)};
}

// Reads the file or its part of the pack.
void ReadListedFile(const std::string& path, size_t number, const FilePack* pack,
                    const SourceRef& where, std::string* raw) try {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  if (pack == nullptr) {
    *raw = ReadFile(path, kMaxBytes);
  } else {
    pack->Read(number, raw);
  }
} catch (const Error& error) {
  throw Error(error.code(), where, Join("cannot read the image: ", error.what()));
}

}  // namespace

std::vector<ListedImage> ReadImageList(const std::string& path) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  const std::string content = ReadListFile(path, kMaxBytes);
  std::vector<ListedImage> images;
  std::string_view rest = content;
  for (int line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = Trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.empty()) continue;
    images.push_back(ParseLine(path, text, line));
    images.back().number = images.size() - 1;
  }
  if (images.empty()) {
    throw Error(ErrorCode::kData, {path},
                "the list has no images; write one line 'path label' per image");
  }
  return images;
}

void LoadListedImage(const std::string& list, const ListedImage& listed,
                     const ImageFileOptions& reading, std::string* raw, Image* image,
                     const CropChooser* choose, DecodedRegion* held) {
  const std::string path = reading.root + listed.path;
  const SourceRef where{list, listed.line};
  const std::string what = Join("image '", EscapeControl(path), "'");
  ReadListedFile(path, listed.number, reading.pack, where, raw);
  const bool resizes = reading.Resizes();
  DecodeImage(*raw, reading.colors, where, what, image, resizes ? BitDepth::kBytes : reading.depth,
              resizes ? nullptr : choose, held);
  if (!resizes) return;
  const auto [height, width] = WantedSize(reading, *image);
  if (height == image->height && width == image->width) return;
  if (height > kMaxPixels / width) {
    throw Error(ErrorCode::kData, where,
                Join(what, " is ", image->width, "x", image->height, " pixels and would become ",
                     width, "x", height, "; the limit is ", kMaxPixels, " pixels"));
  }
  Image resized;
  ResizeImage(*image, {0, 0, image->width, image->height}, static_cast<int>(height),
              static_cast<int>(width), &resized);
  *image = std::move(resized);
  if (held != nullptr) *held = {0, 0, 1, image->height, image->width};
}

ImageFileOptions ReadImageFileOptions(const LayerSpec& layer) {
  constexpr char kParam[] = "image_data_param";
  constexpr uint32_t kMaxSide = 1u << 20;
  const caffe::ImageDataParameter& param = layer.proto().image_data_param();
  if ((param.new_height() == 0) != (param.new_width() == 0)) {
    layer.FailIn(kParam, param.new_height() == 0 ? "new_width" : "new_height",
                 "new_height and new_width need each other; give both or none");
  }
  if (param.short_side() > 0 && param.new_height() > 0) {
    layer.FailIn(kParam, "short_side",
                 "short_side cannot be combined with new_height and new_width; remove one of them");
  }
  for (const auto& [field, side] :
       {std::pair("new_height", param.new_height()), std::pair("new_width", param.new_width()),
        std::pair("short_side", param.short_side())}) {
    if (side > kMaxSide) {
      layer.FailIn(kParam, field, Join(field, " is ", side, "; it must be at most ", kMaxSide));
    }
  }
  ImageFileOptions reading;
  reading.root = param.root_folder();
  reading.colors = param.is_color() ? ColorMode::kColor : ColorMode::kGray;
  reading.height = static_cast<int>(param.new_height());
  reading.width = static_cast<int>(param.new_width());
  reading.short_side = static_cast<int>(param.short_side());
  return reading;
}

}  // namespace trainer
