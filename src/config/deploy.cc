#include "trainer/config/deploy.h"

#include <google/protobuf/descriptor.h>

#include <set>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using caffe::LayerParameter;

bool IsLoss(const LayerParameter& layer) { return layer.type().ends_with("Loss"); }

bool IsSource(const LayerParameter& layer) {
  return layer.bottom_size() == 0 && layer.type() != "Input" && layer.type() != "Parameter" &&
         layer.type() != "DummyData";
}

// What takes the place of a loss: its scores as probabilities, or the scores themselves ("").
std::string AnswerType(const std::string& loss) {
  if (loss == "SoftmaxWithLoss" || loss == "InfogainLoss") return "Softmax";
  return loss == "SigmoidCrossEntropyLoss" ? "Sigmoid" : "";
}

float WeightOf(const LayerParameter& loss) {
  return loss.loss_weight_size() > 0 ? loss.loss_weight(0) : 1;
}

const LayerSpec* MainLoss(const std::vector<LayerSpec>& layers) {
  const LayerSpec* main = nullptr;
  for (const LayerSpec& layer : layers) {
    if (!IsLoss(layer.proto()) || layer.proto().bottom_size() == 0) continue;
    if (main == nullptr || WeightOf(layer.proto()) >= WeightOf(main->proto())) main = &layer;
  }
  return main;
}

// A name that no blob of the layers has yet.
std::string FreeName(const std::string& wish, const std::vector<LayerParameter>& layers) {
  std::set<std::string> taken;
  for (const LayerParameter& layer : layers) {
    taken.insert(layer.name());
    taken.insert(layer.top().begin(), layer.top().end());
  }
  return taken.count(wish) == 0 ? wish : FreeName(wish + "_out", layers);
}

// Appends the layer that answers in the loss's place; returns the blob to keep.
std::string AddAnswer(const LayerParameter& loss, std::vector<LayerParameter>& layers) {
  const std::string type = AnswerType(loss.type());
  if (type.empty()) return loss.bottom(0);
  LayerParameter answer;
  answer.set_name(FreeName("prob", layers));
  answer.set_type(type);
  answer.add_bottom(loss.bottom(0));
  answer.add_top(answer.name());
  if (loss.softmax_param().has_axis()) {
    answer.mutable_softmax_param()->set_axis(loss.softmax_param().axis());
  } else if (loss.infogain_loss_param().has_axis()) {
    answer.mutable_softmax_param()->set_axis(loss.infogain_loss_param().axis());
  }
  layers.push_back(answer);
  return answer.name();
}

// Those that an output needs, in order. `wanted` grows to all blobs that are needed.
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

LayerParameter InputFor(const LayerParameter& source) {
  LayerParameter input;
  input.set_name(source.top(0));
  input.set_type("Input");
  *input.mutable_top() = source.top();
  return input;
}

// Clears every FillerParameter inside.
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

void StripTraining(LayerParameter* layer) {
  layer->clear_include();
  layer->clear_exclude();
  layer->clear_phase();
  layer->clear_loss_weight();
  layer->clear_propagate_down();
  ClearFillers(layer);
  bool shares = false;
  for (caffe::ParamSpec& param : *layer->mutable_param()) {
    shares = shares || param.has_name();
    param.clear_lr_mult();
    param.clear_decay_mult();
  }
  if (!shares) layer->clear_param();
}

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

caffe::NetParameter MakeDeploy(const NetSpec& net, const DeployOptions& options) {
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
    outputs.push_back(AddAnswer(loss->proto(), layers));
  }
  CheckOutputs(net, layers, outputs);
  caffe::NetParameter deploy;
  deploy.set_name(net.proto.name());
  for (LayerParameter& layer : Ancestors(layers, {outputs.begin(), outputs.end()})) {
    if (IsSource(layer)) layer = InputFor(layer);
    StripTraining(&layer);
    *deploy.add_layer() = layer;
  }
  return deploy;
}

std::vector<std::string> InputsWithoutShape(const caffe::NetParameter& deploy) {
  std::vector<std::string> inputs;
  for (const LayerParameter& layer : deploy.layer()) {
    if (layer.type() != "Input" || layer.input_param().shape_size() > 0) continue;
    inputs.insert(inputs.end(), layer.top().begin(), layer.top().end());
  }
  return inputs;
}

}  // namespace trainer
