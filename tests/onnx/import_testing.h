#pragma once
// Runs imported nets for the tests.

#include <google/protobuf/text_format.h>

#include <memory>
#include <string>
#include <vector>

#include "onnx/test_model.h"
#include "support/net_text.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/net/net.h"
#include "trainer/net/weights.h"
#include "trainer/onnx/import_onnx.h"

namespace trainer {

inline std::string TextOf(const caffe::NetParameter& net) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(net, &text);
  return text;
}

// Returns the types of the net's layers, without Input layers.
inline std::vector<std::string> TypesOf(const ImportedNet& imported) {
  std::vector<std::string> types;
  for (const caffe::LayerParameter& layer : imported.net.layer()) {
    if (layer.type() != "Input") types.push_back(layer.type());
  }
  return types;
}
inline std::vector<std::string> LayerNamesOf(const ImportedNet& imported) {
  std::vector<std::string> names;
  for (const caffe::LayerParameter& layer : imported.net.layer()) {
    if (layer.type() != "Input") names.push_back(layer.name());
  }
  return names;
}

// Runs the imported net on `inputs`, in the order of its Input layers, and returns its first
// output.
inline std::vector<float> Compute(const ImportedNet& imported,
                                  const std::vector<std::vector<float>>& inputs) {
  const NetSpec spec = NetFromText(TextOf(imported.net));
  const std::unique_ptr<Device> device = MakeCpuDevice(1);
  ParamStore params(*device);
  NetOptions options = QuietOptions(caffe::TEST);
  options.memory = BufferReuse::kSeparate;
  Net net(spec, options, *device, params);
  CopyWeights(imported.weights, "weights", net);
  size_t next = 0;
  for (const caffe::LayerParameter& layer : imported.net.layer()) {
    if (layer.type() == "Input") net.WriteNchw(inputs.at(next++), net.Value(layer.top(0)));
  }
  net.Forward();
  const Tensor value = net.Value(imported.first_output);
  std::vector<float> host(static_cast<size_t>(value.Count()));
  net.ReadNchw(value, host);
  return host;
}
inline std::vector<float> Compute(const TestModel& model,
                                  const std::vector<std::vector<float>>& inputs) {
  return Compute(model.Import(), inputs);
}

}  // namespace trainer
