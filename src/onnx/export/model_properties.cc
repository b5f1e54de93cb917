#include "trainer/onnx/model_properties.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/error/error.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/predict/blob_source.h"
#include "trainer/inference/predict/image_preprocessor.h"

namespace trainer {
namespace {

constexpr char kMeanValues[] = "model_info mean_values";
constexpr char kScaleValues[] = "model_info scale_values";
constexpr char kReverseChannels[] = "model_info reverse_input_channels";
constexpr char kPixelFormat[] = "Image.BitmapPixelFormat";

void AddProperty(const std::string& key, const std::string& value, onnx::ModelProto* model) {
  onnx::StringStringEntryProto& property = *model->add_metadata_props();
  property.set_key(key);
  property.set_value(value);
}

// Returns the names as a dictionary of Python, which ultralytics' programs read.
std::string PythonDictionary(const std::vector<std::string>& labels) {
  std::string text = "{";
  for (size_t i = 0; i < labels.size(); ++i) {
    std::string quoted;
    for (const char c : labels[i]) {
      if (c == '\'' || c == '\\') quoted += '\\';
      quoted += c;
    }
    text += Join(i == 0 ? "" : ", ", i, ": '", quoted, "'");
  }
  return text + "}";
}

// Joins the names with blanks for OpenVINO, and replaces blanks inside a name by underscores.
std::string BlankSeparated(std::vector<std::string> labels) {
  for (std::string& label : labels) std::ranges::replace(label, ' ', '_');
  return JoinList(labels, " ");
}

// Returns the DetectionOutput layer that computes the model's only output; null for other models.
const LayerSpec* FindDetector(const Net& net, const onnx::GraphProto& graph) {
  if (graph.output_size() != 1) return nullptr;
  const Graph& in = net.graph();
  const auto found = in.latest_by_name.find(graph.output(0).name());
  if (found == in.latest_by_name.end()) return nullptr;
  const LayerSpec& layer = in.nodes[in.values[found->second].producer].spec;
  return layer.type() == "DetectionOutput" ? &layer : nullptr;
}

// Returns the preprocessing for an input (N, C, H, W). The mean has one number per channel if all
// pixels of a channel have the same mean. Throws as ImagePreprocessor does.
OnnxPreprocessing MakeOnnxPreprocessing(const Shape& input, const PreprocessOptions& options) {
  PreprocessOptions center = options;
  center.oversample = false;
  OnnxPreprocessing how;
  how.factor = options.raw_scale / 255;
  how.scale = options.scale;
  const std::vector<float> mean = ImagePreprocessor(input, center).MeanOfFirstCrop();
  const auto plane = static_cast<std::ptrdiff_t>(input[2] * input[3]);
  for (auto channel = mean.begin(); channel != mean.end(); channel += plane) {
    how.mean.push_back(*channel);
    if (std::any_of(channel, channel + plane, [&](float m) { return m != *channel; })) {
      how.mean = mean;
      return how;
    }
  }
  if (std::ranges::all_of(how.mean, [](float m) { return m == 0; })) how.mean.clear();
  return how;
}

// Returns whether the options change pixels.
bool ChangesPixels(const OnnxPreprocessing& how) {
  return how.factor != 1 || how.scale != 1 || !how.mean.empty();
}

ImagePreparation PrepareImages(const Net& net, const NetSpec& spec, const ImageInputFlags& flags) {
  const Shape input = ImageInput(net).value.shape;
  const PreprocessOptions options = ResolvePreprocessOptions(flags, spec);
  ImagePreparation images;
  images.preprocessing = MakeOnnxPreprocessing(input, options);
  images.is_known = ChangesPixels(images.preprocessing);
  images.crops = options.short_side > 0 || options.height > input[2] || options.width > input[3];
  return images;
}

// Adds what OpenVINO's Model API needs to prepare images, (pixel - mean_values) / scale_values.
void AddPreparation(const ModelDescription& description, const Shape& input,
                    onnx::ModelProto* model) {
  const OnnxPreprocessing& how = description.images.preprocessing;
  AddProperty("model_info resize_type", description.images.crops ? "crop" : "standard", model);
  AddProperty(kReverseChannels, how.rgb ? "YES" : "NO", model);
  if (description.is_inside) return;
  const bool has_channel_means = how.mean.empty() || std::ssize(how.mean) == input[1];
  if (how.factor == 0 || how.scale == 0 || !has_channel_means) return;
  std::vector<float> means(static_cast<size_t>(input[1]), 0.0f);
  for (size_t c = 0; c < how.mean.size(); ++c) means[c] = how.mean[c] / how.factor;
  AddProperty(kMeanValues, JoinNumbers(means, " "), model);
  const std::vector<float> scales(static_cast<size_t>(input[1]), 1 / (how.factor * how.scale));
  AddProperty(kScaleValues, JoinNumbers(scales, " "), model);
}

// Adds the properties that ONNX itself defines for an input of pixels in [0, 255].
void AddPixelFormat(const ModelDescription& description, const Shape& input,
                    onnx::ModelProto* model) {
  const OnnxPreprocessing& how = description.images.preprocessing;
  if (!description.is_inside || (input[1] != 1 && input[1] != 3)) return;
  const char* const format = input[1] == 1 ? "Gray8" : how.rgb ? "Rgb8" : "Bgr8";
  AddProperty(kPixelFormat, format, model);
  AddProperty("Image.ColorSpaceGamma", "SRGB", model);
  AddProperty("Image.NominalPixelRange", "NominalRange_0_255", model);
}

// Returns the value of a property; "" if it is missing.
std::string PropertyOf(const onnx::ModelProto& model, const std::string& key) {
  for (const onnx::StringStringEntryProto& property : model.metadata_props()) {
    if (property.key() == key) return property.value();
  }
  return "";
}

// Returns the numbers of a property; empty if it is missing or not of numbers.
std::vector<float> NumbersOf(const onnx::ModelProto& model, const std::string& key) {
  std::vector<float> numbers;
  for (const std::string& word : SplitList(PropertyOf(model, key), ' ')) {
    const std::optional<float> number = ParseNumber<float>(word);
    if (!number || !std::isfinite(*number)) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

std::optional<PixelScaling> ReadPixelScaling(const onnx::ModelProto& model) {
  const std::string format = PropertyOf(model, kPixelFormat);
  if (format == "Bgr8" || format == "Gray8") return PixelScaling{};
  PixelScaling scaling{.means = NumbersOf(model, kMeanValues)};
  const std::vector<float> scales = NumbersOf(model, kScaleValues);
  const bool one_scale =
      !scales.empty() && std::ranges::all_of(scales, [&](float s) { return s == scales[0]; });
  if (scaling.means.empty() || !one_scale || scales[0] == 0 ||
      PropertyOf(model, kReverseChannels) == "YES") {
    return std::nullopt;
  }
  scaling.scale = 1 / scales[0];
  if (std::ranges::all_of(scaling.means, [](float m) { return m == 0; })) scaling.means.clear();
  return scaling;
}

bool TakesRgbPixels(const onnx::ModelProto& model) {
  return PropertyOf(model, kPixelFormat) == "Rgb8";
}

ImagePreparation ResolveImagePreparation(const Net& net, const NetSpec& spec,
                                         const ImageInputFlags& flags, const std::string& order) {
  if (!order.empty()) {
    ImagePreparation images = PrepareImages(net, spec, flags);
    images.preprocessing.rgb = order == "rgb" && ImageInput(net).value.shape[1] == 3;
    return images;
  }
  try {
    const WarningsOnly warnings_only;
    return PrepareImages(net, spec, flags);
  } catch (const Error&) {
    if (ImageComment(flags) != kRawPixelsComment) throw;  // the user gave flags
    return {};
  }
}

int64_t CountClasses(const Net& net, const onnx::GraphProto& graph) {
  if (graph.output_size() != 1) return 0;
  if (const LayerSpec* detector = FindDetector(net, graph)) {
    return detector->proto().detection_output_param().num_classes();
  }
  const Shape shape = net.graph().Find(graph.output(0).name()).shape;
  const bool is_row = shape.Rank() >= 2 && shape.Count(2) == 1 && shape[1] > 1;
  return is_row ? shape[1] : 0;
}

void AddModelProperties(const Net& net, const ModelDescription& description,
                        onnx::ModelProto* model) {
  const bool is_detector = FindDetector(net, model->graph()) != nullptr;
  if (CountClasses(net, model->graph()) > 0) {
    AddProperty("task", is_detector ? "detect" : "classify", model);
    AddProperty("model_info model_type", is_detector ? "ssd" : "Classification", model);
  }
  if (!description.labels.empty()) {
    AddProperty("names", PythonDictionary(description.labels), model);
    AddProperty("model_info labels", BlankSeparated(description.labels), model);
  }
  const std::vector<InputBlob> inputs = InputBlobs(net);
  if (inputs.size() != 1 || !inputs[0].value.shape.IsImage()) return;
  const Shape& input = inputs[0].value.shape;
  AddProperty("imgsz", Join("[", input[2], ", ", input[3], "]"), model);
  AddProperty("batch", Join(input[0]), model);
  AddProperty("channels", Join(input[1]), model);
  AddProperty("stride", "1", model);  // ultralytics rounds image sizes to it
  if (!description.images.is_known && !description.is_inside) return;
  AddPreparation(description, input, model);
  AddPixelFormat(description, input, model);
}

}  // namespace trainer
