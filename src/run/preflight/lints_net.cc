// Warnings about the layers of one net.

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <set>

#include "preflight/lints.h"
#include "trainer/base/text/text.h"
#include "trainer/config/layer_types.h"
#include "trainer/config/schema_doc.h"
#include "trainer/net/learning.h"

namespace trainer {
namespace {

// Returns whether a layer of this type only drops or rearranges values.
bool KeepsValues(const std::string& type) {
  static const std::set<std::string> types = {"Dropout", "DropPath", "Flatten",
                                              "Permute", "Reshape",  "Split"};
  return types.contains(type);
}

// Returns whether a layer of this type makes probabilities of probabilities.
bool KeepsRange(const std::string& type) {
  return KeepsValues(type) || type == "Crop" || type == "Interp" || type == "Deconvolution";
}

// Returns the layer that computes bottom `bottom` of `layer`, looking through layers whose type
// `passes`; null if there is none.
const LayerSpec* MakerOf(const std::vector<LayerSpec>& layers, size_t layer, int bottom,
                         bool (*passes)(const std::string& type)) {
  if (layers[layer].proto().bottom_size() <= bottom) return nullptr;
  std::string blob = layers[layer].proto().bottom(bottom);
  for (size_t i = layer; i-- > 0;) {
    const caffe::LayerParameter& proto = layers[i].proto();
    if (std::ranges::find(proto.top(), blob) == proto.top().end()) continue;
    if (!passes(proto.type()) || proto.bottom_size() == 0) return &layers[i];
    blob = proto.bottom(0);
  }
  return nullptr;
}

// Warns about a loss that computes probabilities from scores, if a layer before has computed them:
// training is then slow, and the loss never becomes small.
void LintSoftmax(const std::vector<LayerSpec>& layers, size_t i, Diagnostics* diagnostics) {
  const std::string& type = layers[i].type();
  const bool softmax = type == "SoftmaxWithLoss" || type == "InfogainLoss" ||
                       type == "SoftmaxFocalLoss" || type == "KLDivergenceLoss";
  if (!softmax && type != "SigmoidCrossEntropyLoss" && type != "SigmoidFocalLoss") return;
  const LayerSpec* const before = MakerOf(layers, i, 0, KeepsValues);
  if (before == nullptr || before->type() != (softmax ? "Softmax" : "Sigmoid")) return;
  diagnostics->Warn(Join(layers[i].Where().ToString(), ": ", layers[i].Title(), " computes a ",
                         before->type(), " itself, and its scores come from ", before->Title(),
                         " (", before->Where().ToString(),
                         "): the softmax is applied twice, so all classes get nearly equal scores "
                         "and training is slow; give the loss the input of '",
                         before->name(), "'"));
}

// Warns about a DiceLoss of scores: it needs probabilities.
void LintDice(const std::vector<LayerSpec>& layers, size_t i, Diagnostics* diagnostics) {
  if (layers[i].type() != "DiceLoss") return;
  const LayerSpec* const before = MakerOf(layers, i, 0, KeepsRange);
  if (before == nullptr) return;
  const std::string& type = before->type();
  if (!type.ends_with("Convolution") && type != "ConvolutionDepthwise" && type != "InnerProduct") {
    return;
  }
  diagnostics->Warn(
      Join(layers[i].Where("bottom", 0).ToString(), ": ", layers[i].Title(),
           " needs probabilities from 0 to 1, but its bottom 0 has the scores of ", before->Title(),
           " (", before->Where().ToString(),
           "), which can be any numbers; put a Softmax layer between them, or a Sigmoid layer if a "
           "position can have several classes"));
}

// Warns about a loss whose scores are records and whose targets are computed. If both have the same
// shape, the layer itself cannot find this.
void LintSwappedBottoms(const std::vector<LayerSpec>& layers, size_t i, Diagnostics* diagnostics) {
  static const std::set<std::string> losses = {"SigmoidCrossEntropyLoss", "SigmoidFocalLoss",
                                               "DiceLoss", "KLDivergenceLoss"};
  if (!losses.contains(layers[i].type())) return;
  const LayerSpec* const first = MakerOf(layers, i, 0, KeepsValues);
  const LayerSpec* const second = MakerOf(layers, i, 1, KeepsValues);
  if (first == nullptr || second == nullptr) return;
  const bool is_data = first->proto().bottom_size() == 0 && first->type() != "Parameter";
  if (!is_data || second->proto().bottom_size() == 0) return;
  diagnostics->Warn(Join(layers[i].Where("bottom", 0).ToString(), ": ", layers[i].Title(),
                         ": bottom 0 comes from data, ", first->Title(),
                         ", and bottom 1 is computed by ", second->Title(),
                         ", but bottom 1 must be the targets and gets no gradient, so nothing is "
                         "learned; swap the two bottoms"));
}

// Returns whether the message is a hint of another version of Caffe, which LogHints reports, or
// holds only `limit` and `augment` of data_param, which the program sets in layers of other types.
bool IsReadElsewhere(const caffe::LayerParameter& layer, const std::string& param) {
  const caffe::DataParameter& data = layer.data_param();
  return param.starts_with("mn_") || param == "quantization_param" ||
         (param == "data_param" && (data.has_limit() || data.has_augment()));
}

// Warns about each message that layers of this type do not read, e.g. convolution_param in an
// InnerProduct layer.
void LintParams(const LayerSpec& layer, Diagnostics* diagnostics) {
  const caffe::LayerParameter& proto = layer.proto();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  proto.GetReflection()->ListFields(proto, &fields);
  for (const auto* field : fields) {
    const std::string& name = field->name();
    if (!name.ends_with("_param") || IsReadElsewhere(proto, name)) continue;
    const std::vector<std::string> read = ParamsOfType(layer.type());
    if (std::ranges::find(read, name) != read.end()) continue;
    if (!TypeErrors({layer}).empty()) return;  // The net reports the type.
    diagnostics->Warn(Join(
        layer.Where(name).ToString(), ": ", layer.Title(), ": ", name, " has no effect, because ",
        layer.type(), " reads ",
        read.empty() ? "no such message; remove it"
                     : Join(JoinList(read, " and "), "; move its fields there, or remove it")));
  }
}

}  // namespace

void LintNet(const NetUse& use, Diagnostics* diagnostics) {
  const std::vector<LayerSpec> layers = FilterLayers(*use.net, use.state);
  for (size_t i = 0; i < layers.size(); ++i) {
    LintParams(layers[i], diagnostics);
    LintSoftmax(layers, i, diagnostics);
    LintDice(layers, i, diagnostics);
    LintSwappedBottoms(layers, i, diagnostics);
  }
}

void LintTrainingNet(const Net& net, Diagnostics* diagnostics) {
  std::set<std::string> told;
  for (const Param* param : UntrainedParams(net)) {
    if (!told.insert(param->layer).second) continue;
    diagnostics->Warn(Join(param->where.ToString(), ": no loss depends on layer '", param->layer,
                           "', so its weights keep their initial values; connect its output to a "
                           "loss, remove the layer, or freeze it with freeze: true"));
  }
  for (const Node& node : net.graph().nodes) {
    if (node.spec.type() != "Softmax") continue;
    const Shape& shape = net.graph().values[node.in[0]].shape;
    const int axis = shape.CanonicalAxis(node.spec.proto().softmax_param().axis());
    if (axis < 0 || shape[axis] != 1) continue;
    diagnostics->Warn(Join(node.spec.Where().ToString(), ": ", node.spec.Title(),
                           ": its input has length 1 on axis ", axis,
                           ", so each output is 1 whatever the input is; use a Sigmoid layer for a "
                           "single score, or set the axis of softmax_param"));
  }
}

}  // namespace trainer
