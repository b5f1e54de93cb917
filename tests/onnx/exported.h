#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support/net_text.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/inference_net.h"
#include "trainer/onnx/export_onnx.h"

namespace trainer {

// Holds a net from text, with the weights of its fillers, and the model that was exported from it.
struct Exported {
  NetSpec spec;
  std::unique_ptr<Device> device = MakeCpuDevice(1);
  std::unique_ptr<InferenceNet> net;
  OnnxExport result;

  explicit Exported(const std::string& text, const OnnxExportOptions& options = {})
      : spec(NetFromText(text)) {
    InferenceOptions inference;
    inference.state = StateOf(caffe::TEST);
    inference.memory = BufferReuse::kSeparate;
    net = std::make_unique<InferenceNet>(spec, *device, inference);
    result = ExportOnnx(spec, net->net(), options);
  }

  const onnx::GraphProto& graph() const { return result.model.graph(); }

  // Returns a line per node: "name: Op(inputs) attributes -> outputs", and the bodies of Scans.
  std::string Nodes() const { return Describe(graph()); }

  // Returns the numbers of the constant with this name, or an empty list if it does not exist.
  std::vector<float> Constant(const std::string& name) const {
    for (const onnx::TensorProto& tensor : graph().initializer()) {
      if (tensor.name() != name) continue;
      std::vector<float> values(tensor.raw_data().size() / sizeof(float));
      std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
      return values;
    }
    return {};
  }

  // Returns "data (batch, 3, 8, 8)" for each input or output.
  static std::string Shapes(
      const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values) {
    std::vector<std::string> all;
    for (const onnx::ValueInfoProto& value : values) {
      std::vector<std::string> dims;
      for (const auto& dim : value.type().tensor_type().shape().dim()) {
        dims.push_back(dim.has_dim_value()   ? Join(dim.dim_value())
                       : dim.has_dim_param() ? dim.dim_param()
                                             : "?");
      }
      all.push_back(Join(value.name(), " (", JoinList(dims), ")"));
    }
    return JoinList(all, "; ");
  }

 private:
  static std::string Describe(const onnx::GraphProto& graph) {
    std::string text;
    for (const onnx::NodeProto& node : graph.node()) {
      text += Join(node.name(), ": ", node.op_type(), "(", Names(node.input()), ")");
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        text += Join(" ", attribute.name(), "=", ValueOf(attribute));
      }
      text += Join(" -> ", Names(node.output()), "\n");
    }
    return text;
  }

  static std::string Names(const google::protobuf::RepeatedPtrField<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  static std::string ValueOf(const onnx::AttributeProto& attribute) {
    switch (attribute.type()) {
      case onnx::AttributeProto::INT:
        return Join(attribute.i());
      case onnx::AttributeProto::FLOAT:
        return Join(attribute.f());
      case onnx::AttributeProto::STRING:
        return attribute.s();
      case onnx::AttributeProto::INTS: {
        std::string text;
        for (const int64_t value : attribute.ints()) text += Join(text.empty() ? "" : ",", value);
        return text;
      }
      default:
        return "{\n" + Describe(attribute.g()) + "}";
    }
  }
};

}  // namespace trainer
