#pragma once
// Writes metadata into a model file under the keys that viewers and runtimes look for.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx.pb.h"
#include "trainer/config/net_spec.h"
#include "trainer/inference/predict/image_input_flags.h"
#include "trainer/net/net.h"
#include "trainer/onnx/export_onnx.h"

namespace trainer {

// Describes how the images that a net reads are prepared.
struct ImagePreparation {
  bool is_known = false;
  bool crops = false;  // images are cropped after they are resized
  OnnxPreprocessing preprocessing = {};
};

// Reads how images become the input of the net from `flags` and from the comment in the net's file.
// `order` is "rgb" or "bgr" if the model begins with the preprocessing, else "". If `order` is set,
// throws kConfig unless the net has one input of images, and as ResolvePreprocessOptions and
// ImagePreprocessor do. If `order` is "" and no flag is given, the preparation is left unknown in
// these cases.
ImagePreparation ResolveImagePreparation(const Net& net, const NetSpec& spec,
                                         const ImageInputFlags& flags, const std::string& order);

struct ModelDescription {
  std::vector<std::string> labels = {};  // names of the classes; empty: unknown
  ImagePreparation images = {};
  bool is_inside = false;  // the graph begins with the preprocessing
};

// Says how pixels from 0 to 255 become the input of a model: (pixel - mean) * scale.
struct PixelScaling {
  std::vector<float> means = {};  // per channel, or none
  float scale = 1;
};

// Reads what AddModelProperties has written about images. Returns nothing if the model does not say
// it, or if the model needs another scale per channel or another order of the colours than blue,
// green, red.
std::optional<PixelScaling> ReadPixelScaling(const onnx::ModelProto& model);

// Returns whether the model says that it takes pixels in the order red, green, blue.
bool TakesRgbPixels(const onnx::ModelProto& model);

// Returns the number of classes of a model with one output. The output must have the shape (N,
// classes) or (N, classes, 1, 1), or hold the detections of a DetectionOutput layer. Returns 0 for
// other models.
int64_t CountClasses(const Net& net, const onnx::GraphProto& graph);

// Adds three groups of properties: the keys that ultralytics reads (names, imgsz, task, ...), the
// keys in OpenVINO's model_info, and, if the input holds pixels, the keys that ONNX itself defines
// (Image.BitmapPixelFormat, ...).
void AddModelProperties(const Net& net, const ModelDescription& description,
                        onnx::ModelProto* model);

}  // namespace trainer
