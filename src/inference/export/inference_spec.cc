#include "trainer/inference/export/inference_spec.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <set>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using caffe::LayerParameter;

bool IsLoss(const LayerParameter& layer) { return layer.type().ends_with("Loss"); }

// Returns whether the layer reads data, so that an Input layer must replace it. Input, Parameter
// and DummyData layers stay.
bool IsSource(const LayerParameter& layer) {
  return layer.bottom_size() == 0 && layer.type() != "Input" && layer.type() != "Parameter" &&
         layer.type() != "DummyData";
}

// Returns the type of the layer that turns the scores of a loss into probabilities; "" if the
// scores are the output.
std::string ProbabilityType(const std::string& loss) {
  for (const char* type :
       {"SoftmaxWithLoss", "InfogainLoss", "SoftmaxFocalLoss", "KLDivergenceLoss"}) {
    if (loss == type) return "Softmax";
  }
  return loss == "SigmoidCrossEntropyLoss" || loss == "SigmoidFocalLoss" ? "Sigmoid" : "";
}

// Returns the weight of the loss; Caffe's default is 1.
float WeightOf(const LayerParameter& loss) {
  return loss.loss_weight_size() > 0 ? loss.loss_weight(0) : 1;
}

// Returns the loss with the largest weight, the last one of equal weights; null without a loss.
const LayerSpec* MainLoss(const std::vector<LayerSpec>& layers) {
  const LayerSpec* main = nullptr;
  for (const LayerSpec& layer : layers) {
    if (!IsLoss(layer.proto()) || layer.proto().bottom_size() == 0) continue;
    if (main == nullptr || WeightOf(layer.proto()) >= WeightOf(main->proto())) main = &layer;
  }
  return main;
}

// Returns `wish`, followed by "_out" as often as needed to differ from all layers and blobs.
std::string FreeName(const std::string& wish, const std::vector<LayerParameter>& layers) {
  std::set<std::string> taken;
  for (const LayerParameter& layer : layers) {
    taken.insert(layer.name());
    taken.insert(layer.top().begin(), layer.top().end());
  }
  return taken.count(wish) == 0 ? wish : FreeName(wish + "_out", layers);
}

// Appends the layer that computes the probabilities in place of a loss, and returns its output. If
// the scores are the output, appends nothing and returns the scores.
std::string ReplaceLoss(const LayerParameter& loss, std::vector<LayerParameter>& layers) {
  const std::string type = ProbabilityType(loss.type());
  if (type.empty()) return loss.bottom(0);
  LayerParameter output;
  output.set_name(FreeName("prob", layers));
  output.set_type(type);
  output.add_bottom(loss.bottom(0));
  output.add_top(output.name());
  if (loss.softmax_param().has_axis()) {
    output.mutable_softmax_param()->set_axis(loss.softmax_param().axis());
  } else if (loss.infogain_loss_param().has_axis()) {
    output.mutable_softmax_param()->set_axis(loss.infogain_loss_param().axis());
  }
  layers.push_back(output);
  return output.name();
}

// Returns the layers on which the `wanted` blobs depend, in order. Layers without bottoms keep only
// the tops that are needed.
std::vector<LayerParameter> Ancestors(const std::vector<LayerParameter>& layers,
                                      std::set<std::string> wanted) {
  std::vector<LayerParameter> kept;
  for (size_t i = layers.size(); i-- > 0;) {
    const LayerParameter& layer = layers[i];
    bool needed = false;
    for (const std::string& top : layer.top()) needed = needed || wanted.count(top) > 0;
    if (!needed) continue;
    wanted.insert(layer.bottom().begin(), layer.bottom().end());
    kept.insert(kept.begin(), layer);
    if (layer.bottom_size() > 0) continue;
    google::protobuf::RepeatedPtrField<std::string> tops;
    for (const std::string& top : layer.top()) {
      if (wanted.count(top) > 0) *tops.Add() = top;
    }
    kept.front().mutable_top()->Swap(&tops);
  }
  return kept;
}

// Returns an Input layer without a shape, with the tops of a data layer.
LayerParameter InputFor(const LayerParameter& source) {
  LayerParameter input;
  input.set_name(source.top(0));
  input.set_type("Input");
  *input.mutable_top() = source.top();
  return input;
}

// Clears every FillerParameter in the message.
void ClearFillers(google::protobuf::Message* message) {
  const auto* reflection = message->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const auto* field : fields) {
    if (field->message_type() == nullptr || field->is_repeated()) continue;
    if (field->message_type() == caffe::FillerParameter::descriptor()) {
      reflection->ClearField(message, field);
    } else {
      ClearFillers(reflection->MutableMessage(message, field));
    }
  }
}

// Clears the fields that only training or the filter by phase uses. Parameters stay if one has a
// name, because layers may share it.
void StripTraining(LayerParameter* layer) {
  layer->clear_include();
  layer->clear_exclude();
  layer->clear_phase();
  layer->clear_loss_weight();
  layer->clear_propagate_down();
  layer->clear_freeze();
  ClearFillers(layer);
  bool shares = false;
  for (caffe::ParamSpec& param : *layer->mutable_param()) {
    shares = shares || param.has_name();
    param.clear_lr_mult();
    param.clear_decay_mult();
  }
  if (!shares) layer->clear_param();
}

// Throws kConfig, with the nearest name, if an output is not a top of any layer.
void CheckOutputs(const NetSpec& net, const std::vector<LayerParameter>& layers,
                  const std::vector<std::string>& outputs) {
  std::vector<std::string> blobs;
  for (const LayerParameter& layer : layers) {
    blobs.insert(blobs.end(), layer.top().begin(), layer.top().end());
  }
  for (const std::string& output : outputs) {
    if (std::find(blobs.begin(), blobs.end(), output) != blobs.end()) continue;
    throw Error(
        ErrorCode::kConfig, {net.file},
        Join("no layer of the TEST net makes a blob '", output, "'.", DidYouMean(output, blobs)));
  }
}

}  // namespace

caffe::NetParameter MakeInferenceSpec(const NetSpec& net, const InferenceSpecOptions& options) {
  const std::vector<LayerSpec> filtered = FilterLayers(net, options.state);
  std::vector<LayerParameter> layers;
  for (const LayerSpec& spec : filtered) {
    if (!IsLoss(spec.proto())) layers.push_back(spec.proto());
  }
  std::vector<std::string> outputs = options.outputs;
  if (outputs.empty()) {
    const LayerSpec* loss = MainLoss(filtered);
    if (loss == nullptr) {
      throw Error(
          ErrorCode::kConfig, {net.file},
          "the TEST net has no loss, so the output blob is unknown; name it with --output=BLOB");
    }
    outputs.push_back(ReplaceLoss(loss->proto(), layers));
  }
  CheckOutputs(net, layers, outputs);
  caffe::NetParameter converted;
  converted.set_name(net.proto.name());
  for (LayerParameter& layer : Ancestors(layers, {outputs.begin(), outputs.end()})) {
    if (IsSource(layer)) layer = InputFor(layer);
    StripTraining(&layer);
    *converted.add_layer() = layer;
  }
  return converted;
}

NetSpec WithDataForTests(const NetSpec& net, const caffe::NetState& state) {
  NetSpec whole;
  whole.proto = net.proto;
  whole.layers = net.layers;
  whole.file = net.file;
  whole.tree = net.tree;
  const auto sources_of = [&](caffe::Phase phase) {
    caffe::NetState other = state;
    other.set_phase(phase);
    std::set<std::string> sources;
    for (const LayerSpec& layer : FilterLayers(net, other)) {
      if (IsSource(layer.proto())) sources.insert(layer.name());
    }
    return sources;
  };
  if (state.phase() != caffe::TEST || !sources_of(caffe::TEST).empty()) return whole;
  const std::set<std::string> sources = sources_of(caffe::TRAIN);
  for (LayerSpec& layer : whole.layers) {
    if (!sources.contains(layer.name()) || !IsSource(layer.proto())) continue;
    layer.mutable_proto().clear_include();
    layer.mutable_proto().clear_exclude();
  }
  return whole;
}

std::vector<std::string> InputsWithoutShape(const caffe::NetParameter& net) {
  std::vector<std::string> inputs;
  for (const LayerParameter& layer : net.layer()) {
    if (layer.type() != "Input" || layer.input_param().shape_size() > 0) continue;
    inputs.insert(inputs.end(), layer.top().begin(), layer.top().end());
  }
  return inputs;
}

}  // namespace trainer
