// Exports Softmax and the layers that map each number on its own.

#include <cmath>
#include <limits>

#include "export/layer_export.h"

namespace trainer {
namespace {

// Adds the only operator of a layer without attributes.
void ExportUnary(const LayerExport& layer, std::string_view op) {
  layer.Set(0, layer.graph().Add(op, {layer.In()}));
}

// Sets the output to the input, because the layer changes nothing in phase TEST.
void ExportCopy(const LayerExport& layer) {
  for (int i = 0; i < layer.NumOutputs(); ++i) layer.Set(i, layer.In());
}

void ExportNoise(const LayerExport& layer) {
  if (layer.proto().noise_param().in_test()) {
    layer.RefuseIn("noise_param", "in_test", "ONNX has no random numbers that repeat");
  }
  ExportCopy(layer);
}

void ExportRelu(const LayerExport& layer) {
  const float slope = layer.proto().relu_param().negative_slope();
  if (slope == 0) return ExportUnary(layer, "Relu");
  layer.Set(0, layer.graph().Add("LeakyRelu", {layer.In()}, {{"alpha", slope}}));
}

// Per-channel slopes get axes of length 1 after the channel axis, so that they broadcast.
void ExportPRelu(const LayerExport& layer) {
  FloatArray slope = layer.ReadParam(0);
  if (slope.dims.empty()) {
    slope.dims = {1};
  } else {
    slope.dims.resize(static_cast<size_t>(layer.InShape().Rank()) - 1, 1);
  }
  layer.Set(0, layer.graph().Add("PRelu", {layer.In(), layer.Constant(slope, "slope")}));
}

void ExportElu(const LayerExport& layer) {
  const caffe::ELUParameter& p = layer.proto().elu_param();
  GraphWriter& graph = layer.graph();
  const std::string y = graph.Add("Elu", {layer.In()}, {{"alpha", p.alpha()}});
  layer.Set(0, graph.Line(y, p.lambda(), 0));
}

void ExportClip(const LayerExport& layer) {
  const caffe::ClipParameter& p = layer.proto().clip_param();
  GraphWriter& graph = layer.graph();
  layer.Set(0, graph.Add("Clip", {layer.In(), graph.Float(p.min()), graph.Float(p.max())}));
}

// Returns the natural logarithm of a base, where -1 means e.
float LogOfExportedBase(float base) { return base == -1 ? 1 : std::log(base); }

void ExportExp(const LayerExport& layer) {
  const caffe::ExpParameter& p = layer.proto().exp_param();
  const float log_base = LogOfExportedBase(p.base());
  GraphWriter& graph = layer.graph();
  const std::string x = graph.Line(layer.In(), p.scale() * log_base, p.shift() * log_base);
  layer.Set(0, graph.Add("Exp", {x}));
}

void ExportLog(const LayerExport& layer) {
  const caffe::LogParameter& p = layer.proto().log_param();
  GraphWriter& graph = layer.graph();
  const std::string y = graph.Add("Log", {graph.Line(layer.In(), p.scale(), p.shift())});
  layer.Set(0, graph.Line(y, 1 / LogOfExportedBase(p.base()), 0));
}

void ExportPower(const LayerExport& layer) {
  const caffe::PowerParameter& p = layer.proto().power_param();
  GraphWriter& graph = layer.graph();
  const std::string x = graph.Line(layer.In(), p.scale(), p.shift());
  if (p.power() == 1) return layer.Set(0, x);
  if (p.power() == 2) return layer.Set(0, graph.Add("Mul", {x, x}));
  layer.Set(0, graph.Add("Pow", {x, graph.Float(p.power())}));
}

void ExportGelu(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const std::string x = layer.In();
  std::string odd;
  if (layer.proto().gelu_param().approximate()) {
    const std::string square = graph.Add("Mul", {x, x});
    const std::string factor = graph.Line(square, 0.044715f, 1);
    const std::string inner = graph.Add("Mul", {x, factor});
    odd = graph.Add("Tanh", {graph.Line(inner, 0.79788456f, 0)});  // sqrt(2 / pi)
  } else {
    odd = graph.Add("Erf", {graph.Add("Div", {x, graph.Float(std::sqrt(2.0f))})});
  }
  const std::string twice = graph.Add("Mul", {x, graph.Line(odd, 1, 1)});
  layer.Set(0, graph.Line(twice, 0.5f, 0));
}

void ExportHardSwish(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const std::string x = layer.In();
  if (graph.opset() >= 14) return ExportUnary(layer, "HardSwish");
  const std::string gate = graph.Add("HardSigmoid", {x}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
  layer.Set(0, graph.Add("Mul", {x, gate}));
}

void ExportMish(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const std::string gate = graph.Add("Tanh", {graph.Add("Softplus", {layer.In()})});
  layer.Set(0, graph.Add("Mul", {layer.In(), gate}));
}

void ExportSwish(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const float beta = layer.spec().type() == "SiLU" ? 1 : layer.proto().swish_param().beta();
  const std::string gate = graph.Add("Sigmoid", {graph.Line(layer.In(), beta, 0)});
  layer.Set(0, graph.Add("Mul", {layer.In(), gate}));
}

void ExportThreshold(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const float threshold = layer.proto().threshold_param().threshold();
  const std::string above = graph.Add("Greater", {layer.In(), graph.Float(threshold)});
  layer.Set(0, graph.Cast(above, onnx::TensorProto::FLOAT));
}

void ExportSoftmax(const LayerExport& layer) {
  const int axis = layer.InShape().Axis(layer.proto().softmax_param().axis());
  layer.Set(0, layer.graph().Add("Softmax", {layer.In()}, {{"axis", axis}}));
}

const RegisterExport kExportAbsVal({"AbsVal"},
                                   {[](const LayerExport& l) { ExportUnary(l, "Abs"); }});
const RegisterExport kExportBnll({"BNLL"},
                                 {[](const LayerExport& l) { ExportUnary(l, "Softplus"); }});
const RegisterExport kExportSigmoid({"Sigmoid"},
                                    {[](const LayerExport& l) { ExportUnary(l, "Sigmoid"); }});
const RegisterExport kExportTanh({"TanH"}, {[](const LayerExport& l) { ExportUnary(l, "Tanh"); }});
const RegisterExport kExportCopy({"Dropout", "DropPath", "Split"}, {ExportCopy});
const RegisterExport kExportNoise({"Noise"}, {ExportNoise});
const RegisterExport kExportRelu({"ReLU"}, {ExportRelu});
const RegisterExport kExportPRelu({"PReLU"}, {ExportPRelu});
const RegisterExport kExportElu({"ELU"}, {ExportElu});
const RegisterExport kExportClip({"Clip"}, {ExportClip});
const RegisterExport kExportExp({"Exp"}, {ExportExp});
const RegisterExport kExportLog({"Log"}, {ExportLog});
const RegisterExport kExportPower({"Power"}, {ExportPower});
const RegisterExport kExportGelu({"GELU"}, {ExportGelu});
const RegisterExport kExportHardSwish({"HardSwish"}, {ExportHardSwish});
const RegisterExport kExportMish({"Mish"}, {ExportMish});
const RegisterExport kExportSwish({"SiLU", "Swish"}, {ExportSwish});
const RegisterExport kExportThreshold({"Threshold"}, {ExportThreshold});
const RegisterExport kExportSoftmax({"Softmax"}, {ExportSoftmax});

}  // namespace
}  // namespace trainer
