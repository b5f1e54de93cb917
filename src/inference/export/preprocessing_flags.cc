#include "export/preprocessing_flags.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/named_file.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/image/image.h"
#include "trainer/input/image_list.h"
#include "trainer/input/source.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/hdf5_list.h"
#include "trainer/storage/table_format.h"

namespace trainer {
namespace {

using caffe::LayerParameter;
using caffe::TransformationParameter;

// Returns whether images can be the input of this layer.
bool IsImageData(const LayerParameter& layer) {
  return layer.type() == "Data" || layer.type() == "ImageData";
}

// Returns whether the layer crops images, so that their size before the crop matters.
bool Crops(const TransformationParameter& transform) {
  return transform.crop_size() > 0 || transform.crop_h() > 0 || transform.crop_w() > 0;
}

constexpr char kUnknownResize[] = "--resize=H,W";
constexpr int kSampled = 32;  // records whose sizes are compared

struct ImageSize {
  int height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

// Returns the sizes of the first records of a Data layer.
std::vector<ImageSize> SampleDatabase(const LayerSpec& layer) {
  const std::string path = DatabasePath(layer);
  const auto& backend = caffe::DataParameter::DB_Name(layer.proto().data_param().backend());
  const std::unique_ptr<Cursor> cursor = OpenCursor(backend, path);
  DatumParser parser;
  std::vector<ImageSize> sizes;
  do {
    const DatumView& record = parser.Parse(path, cursor->Key(), cursor->Value());
    sizes.push_back({record.height, record.width});
  } while (sizes.size() < kSampled && !cursor->Next());
  return sizes;
}

// Returns the sizes of images spread over the list of an ImageData layer.
std::vector<ImageSize> SampleList(const LayerSpec& layer) {
  const caffe::ImageDataParameter& param = layer.proto().image_data_param();
  const ImageList list =
      ReadNamedFile(layer, "image_data_param", "source", param.source(), ReadImages);
  const std::vector<ListedImage>& images = list.images;
  const ImageFileOptions reading = ReadImageFileOptions(layer, list.path);
  const size_t step = std::max<size_t>(1, images.size() / kSampled);
  std::vector<ImageSize> sizes;
  std::string raw;
  Image image;
  for (size_t i = 0; i < images.size(); i += step) {
    LoadListedImage(list.path, images[i], reading, &raw, &image);
    sizes.push_back({image.height, image.width});
  }
  return sizes;
}

// Returns the flag that resizes images as they are before the layer crops them. Prefers what the
// layer's fields say, and reads records otherwise. Returns "--resize=H,W" if the records cannot be
// read or their sizes differ, and --resize_short if only the shorter sides agree.
std::string ResizeFlag(const LayerSpec& layer) try {
  const TransformationParameter& transform = layer.proto().transform_param();
  const caffe::ImageDataParameter& files = layer.proto().image_data_param();
  if (transform.has_random_resized_crop_param()) {
    const uint32_t side = transform.random_resized_crop_param().test_size();
    return Join("--resize_short=", side > 0 ? side : transform.crop_size() * 8 / 7);
  }
  if (files.new_height() > 0) return Join("--resize=", files.new_height(), ",", files.new_width());
  if (files.short_side() > 0) return Join("--resize_short=", files.short_side());
  const std::vector<ImageSize> sizes =
      layer.type() == "Data" ? SampleDatabase(layer) : SampleList(layer);
  const ImageSize& first = sizes.front();
  if (std::ranges::all_of(sizes, [&](const ImageSize& size) { return size == first; })) {
    return Join("--resize=", first.height, ",", first.width);
  }
  const int side = std::min(first.height, first.width);
  if (std::ranges::all_of(sizes, [&](const ImageSize& size) {
        return std::min(size.height, size.width) == side;
      })) {
    return Join("--resize_short=", side);
  }
  return kUnknownResize;
} catch (const Error&) {
  return kUnknownResize;
}

}  // namespace

std::optional<std::string> PreprocessingFlags(const NetSpec& net, const caffe::NetState& state) {
  const std::vector<LayerSpec> layers = FilterLayers(net, state);
  const auto data = std::ranges::find_if(
      layers, [](const LayerSpec& layer) { return IsImageData(layer.proto()); });
  if (data == layers.end() || data->proto().top_size() == 0) return std::nullopt;
  const TransformationParameter& transform = data->proto().transform_param();
  std::string flags;
  if (Crops(transform)) flags += " " + ResizeFlag(*data);
  if (transform.has_mean_file()) flags += Join(" --mean=", transform.mean_file());
  std::string means;
  for (const float value : transform.mean_value()) {
    means += Join(means.empty() ? " --mean_value=" : ",", value);
  }
  flags += means;
  if (transform.scale() != 1) flags += Join(" --scale=", transform.scale());
  return flags.empty() ? flags : flags.substr(1);
}

std::string FindTableSet(const NetSpec& net, const caffe::NetState& state) try {
  for (const LayerSpec& layer : FilterLayers(net, state)) {
    std::string set;
    if (layer.type() == "HDF5Data") {
      const std::string& source = layer.proto().hdf5_data_param().source();
      set = ReadHdf5List(ResolvePath(source, layer.Where().file)).front().path;
    } else if (layer.type() == "Data") {
      set = DatabasePath(layer);
    }
    if (!set.empty() && Exists(TableFormatPath(set))) return set;
  }
  return "";
} catch (const Error&) {  // the list is not there
  return "";
}

}  // namespace trainer
