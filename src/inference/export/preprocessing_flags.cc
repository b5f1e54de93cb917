#include "export/preprocessing_flags.h"

#include <algorithm>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using caffe::LayerParameter;
using caffe::TransformationParameter;

bool IsImageData(const LayerParameter& layer) {
  return layer.type() == "Data" || layer.type() == "ImageData";
}

bool Crops(const TransformationParameter& transform) {
  return transform.crop_size() > 0 || transform.crop_h() > 0 || transform.crop_w() > 0;
}

// Returns "256,256", or "" if the size depends on data that is not there.
std::string SizeBeforeCrop(const LayerParameter& layer, const RecordShape& record_shape) try {
  const caffe::ImageDataParameter& files = layer.image_data_param();
  if (files.new_height() > 0) return Join(files.new_height(), ",", files.new_width());
  const Shape record = record_shape(layer.top(0));
  return record.Rank() == 3 ? Join(record[1], ",", record[2]) : "";
} catch (const Error&) {
  return "";
}

}  // namespace

NetSpec WithoutCrops(const NetSpec& net) {
  NetSpec whole;
  whole.proto = net.proto;
  whole.layers = net.layers;
  whole.file = net.file;
  whole.tree = net.tree;
  for (LayerSpec& layer : whole.layers) {
    if (!IsImageData(layer.proto())) continue;
    TransformationParameter* transform = layer.mutable_proto().mutable_transform_param();
    transform->clear_crop_size();
    transform->clear_crop_h();
    transform->clear_crop_w();
  }
  return whole;
}

std::optional<std::string> PreprocessingFlags(const NetSpec& net, const caffe::NetState& state,
                                              const RecordShape& record_shape) {
  const std::vector<LayerSpec> layers = FilterLayers(net, state);
  const auto data = std::ranges::find_if(
      layers, [](const LayerSpec& layer) { return IsImageData(layer.proto()); });
  if (data == layers.end() || data->proto().top_size() == 0) return std::nullopt;
  const TransformationParameter& transform = data->proto().transform_param();
  std::string flags;
  if (Crops(transform)) {
    const std::string size = SizeBeforeCrop(data->proto(), record_shape);
    flags += Join(" --resize=", size.empty() ? "H,W" : size);
  }
  if (transform.has_mean_file()) flags += Join(" --mean=", transform.mean_file());
  std::string means;
  for (const float value : transform.mean_value()) {
    means += Join(means.empty() ? " --mean_value=" : ",", value);
  }
  flags += means;
  if (transform.scale() != 1) flags += Join(" --scale=", transform.scale());
  return flags.empty() ? flags : flags.substr(1);
}

}  // namespace trainer
