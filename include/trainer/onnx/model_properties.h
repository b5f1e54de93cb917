#pragma once
// What a model file says about itself, in the words that viewers and runtimes look for.

#include <cstdint>
#include <string>
#include <vector>

#include "onnx.pb.h"
#include "trainer/config/net_spec.h"
#include "trainer/inference/predict/image_input_flags.h"
#include "trainer/net/net.h"
#include "trainer/onnx/export_onnx.h"

namespace trainer {

// What is known about the images that a net reads.
struct ImagePreparation {
  bool is_known = false;
  bool crops = false;  // images are cropped after they are resized
  OnnxPreprocessing preprocessing = {};
};

// Returns how images become the input of the net: by `flags` and the comment of the net's file.
// `order` is "rgb" or "bgr" if the model begins with the preprocessing, else "". Then throws
// kConfig unless the net has one input of images, and as ResolvePreprocessOptions and
// ImagePreprocessor; without it, the preparation is not known in these cases.
ImagePreparation ResolveImagePreparation(const Net& net, const NetSpec& spec,
                                         const ImageInputFlags& flags, const std::string& order);

struct ModelDescription {
  std::vector<std::string> labels = {};  // names of the classes; empty: unknown
  ImagePreparation images = {};
  bool is_inside = false;  // the graph begins with the preprocessing
};

// Returns the number of classes of a model with one output, which is (N, classes),
// (N, classes, 1, 1), or the detections of a DetectionOutput layer; 0 for other models.
int64_t CountClasses(const Net& net, const onnx::GraphProto& graph);

// Adds the properties: ultralytics' names, imgsz, task, ...; those of OpenVINO's model_info; and
// the format's own Image.BitmapPixelFormat, ... if the input are pixels.
void AddModelProperties(const Net& net, const ModelDescription& description,
                        onnx::ModelProto* model);

}  // namespace trainer
