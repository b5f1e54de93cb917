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
#include "trainer/input/class_folders.h"

namespace trainer {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Splits a line into its path and the numbers after it, which are appended to `labels`. Sets
// `whole` to false unless the line has one label, an integer.
ListedImage ParseLine(const std::string& list, std::string_view text, int line,
                      std::vector<float>* labels, bool* whole) {
  const auto fail = [&](const char* what) {
    throw Error(ErrorCode::kData, {list, line},
                Join(what, " in '", EscapeControl(text.substr(0, 200)),
                     "'; each line must be a path and its label or labels, separated by spaces"));
  };
  const size_t before = labels->size();
  std::string_view path = text;
  std::optional<int32_t> last;
  for (size_t blank = 0; (blank = path.find_last_of(kBlanks)) != std::string_view::npos;) {
    const std::string_view word = path.substr(blank + 1);
    const std::optional<int32_t> integer = ParseNumber<int32_t>(word);
    const std::optional<float> number = ParseNumber<float>(word);
    const bool too_large = !integer && word.find_first_not_of("-0123456789") == word.npos;
    if (!number || !std::isfinite(*number) || too_large) break;
    if (labels->size() == before) last = integer;
    labels->push_back(*number);
    path = Trim(path.substr(0, blank));
  }
  if (labels->size() == before) {
    fail(path.find_last_of(kBlanks) == path.npos
             ? "no label"
             : "the label is not a 32-bit integer and not a finite number");
  }
  std::reverse(labels->begin() + static_cast<std::ptrdiff_t>(before), labels->end());
  if (labels->size() != before + 1 || !last) *whole = false;
  return {std::string(path), last.value_or(0), line, 0};
}

std::string CountText(int count, const std::string& path) {
  return Join("'", EscapeControl(path), "' has ", Counted(count, "label"));
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

std::span<const float> ImageList::LabelsOf(const ListedImage& image) const {
  if (labels.empty()) return {};
  const auto count = static_cast<size_t>(label_count);
  return std::span(labels).subspan(image.number * count, count);
}

ImageList ReadImageList(const std::string& path) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  const std::string content = ReadListFile(path, kMaxBytes);
  ImageList list;
  list.path = path;
  std::vector<ListedImage>& images = list.images;
  bool whole = true;
  std::string_view rest = content;
  for (int line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = Trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.empty()) continue;
    const size_t before = list.labels.size();
    images.push_back(ParseLine(path, text, line, &list.labels, &whole));
    images.back().number = images.size() - 1;
    const int count = static_cast<int>(list.labels.size() - before);
    if (images.size() == 1) list.label_count = count;
    if (count == list.label_count) continue;
    throw Error(ErrorCode::kData, {path, line},
                Join(CountText(count, images.back().path), ", but ",
                     CountText(list.label_count, images[0].path), " (line ", images[0].line,
                     "); all lines must have the same number of labels"));
  }
  if (images.empty()) {
    throw Error(ErrorCode::kData, {path},
                "the list has no images; write one line 'path label' per image");
  }
  if (whole) list.labels = {};
  return list;
}

ImageList ReadImages(const std::string& path) {
  if (!IsDirectory(path)) return ReadImageList(path);
  ClassFolders found = FindClassFolders(path, EmptyClasses::kAccept);
  ImageList list;
  list.path = path;
  list.images = std::move(found.images);
  list.classes = std::move(found.names);
  for (size_t i = 0; i < list.images.size(); ++i) list.images[i].number = i;
  return list;
}

std::string RootOfImages(const std::string& path, const std::string& root_folder) {
  return IsDirectory(path) ? path + "/" : root_folder;
}

void LoadListedImage(const std::string& list, const ListedImage& listed,
                     const ImageFileOptions& reading, std::string* raw, Image* image,
                     const CropChooser* choose, DecodedRegion* held) {
  const std::string path = reading.root + listed.path;
  const SourceRef where{list, listed.line};
  const std::string what = Join("image '", EscapeControl(path), "'");
  ReadListedFile(path, listed.number, reading.pack, where, raw);
  const bool resizes = reading.Resizes();
  DecodeImage(*raw, reading.colors, where, what, image, reading.depth, resizes ? nullptr : choose,
              held);
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

ImageFileOptions ReadImageFileOptions(const LayerSpec& layer, const std::string& path) {
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
  if (!param.root_folder().empty() && IsDirectory(path)) {
    layer.FailIn(kParam, "root_folder",
                 Join("root_folder is for lists, but source '", EscapeControl(path),
                      "' is a folder; remove root_folder"));
  }
  ImageFileOptions reading;
  reading.root = RootOfImages(path, param.root_folder());
  reading.colors = param.is_color() ? ColorMode::kColor : ColorMode::kGray;
  reading.height = static_cast<int>(param.new_height());
  reading.width = static_cast<int>(param.new_width());
  reading.short_side = static_cast<int>(param.short_side());
  return reading;
}

}  // namespace trainer
