// Rewrites layers with numbered types (V1LayerParameter) as LayerParameter.
#include <google/protobuf/descriptor.h>

#include <map>
#include <string>

#include "trainer/base/text/text.h"
#include "upgrade/upgrade_layers.h"

namespace trainer {
namespace {

using V1Layer = caffe::V1LayerParameter;

// Returns the name today of each numbered type.
const std::map<int, const char*>& TypeNames() {
  static const std::map<int, const char*> names = {
      {V1Layer::ABSVAL, "AbsVal"},
      {V1Layer::ACCURACY, "Accuracy"},
      {V1Layer::ARGMAX, "ArgMax"},
      {V1Layer::BNLL, "BNLL"},
      {V1Layer::CONCAT, "Concat"},
      {V1Layer::CONTRASTIVE_LOSS, "ContrastiveLoss"},
      {V1Layer::CONVOLUTION, "Convolution"},
      {V1Layer::DATA, "Data"},
      {V1Layer::DECONVOLUTION, "Deconvolution"},
      {V1Layer::DROPOUT, "Dropout"},
      {V1Layer::DUMMY_DATA, "DummyData"},
      {V1Layer::ELTWISE, "Eltwise"},
      {V1Layer::EUCLIDEAN_LOSS, "EuclideanLoss"},
      {V1Layer::EXP, "Exp"},
      {V1Layer::FLATTEN, "Flatten"},
      {V1Layer::HDF5_DATA, "HDF5Data"},
      {V1Layer::HDF5_OUTPUT, "HDF5Output"},
      {V1Layer::HINGE_LOSS, "HingeLoss"},
      {V1Layer::IM2COL, "Im2col"},
      {V1Layer::IMAGE_DATA, "ImageData"},
      {V1Layer::INFOGAIN_LOSS, "InfogainLoss"},
      {V1Layer::INNER_PRODUCT, "InnerProduct"},
      {V1Layer::LRN, "LRN"},
      {V1Layer::MEMORY_DATA, "MemoryData"},
      {V1Layer::MULTINOMIAL_LOGISTIC_LOSS, "MultinomialLogisticLoss"},
      {V1Layer::MVN, "MVN"},
      {V1Layer::POOLING, "Pooling"},
      {V1Layer::POWER, "Power"},
      {V1Layer::RELU, "ReLU"},
      {V1Layer::SIGMOID, "Sigmoid"},
      {V1Layer::SIGMOID_CROSS_ENTROPY_LOSS, "SigmoidCrossEntropyLoss"},
      {V1Layer::SILENCE, "Silence"},
      {V1Layer::SLICE, "Slice"},
      {V1Layer::SOFTMAX, "Softmax"},
      {V1Layer::SOFTMAX_LOSS, "SoftmaxWithLoss"},
      {V1Layer::SPLIT, "Split"},
      {V1Layer::TANH, "TanH"},
      {V1Layer::THRESHOLD, "Threshold"},
      {V1Layer::WINDOW_DATA, "WindowData"},
  };
  return names;
}

// Copies the name, bottoms, tops and loss weights, and all messages that have the same name and
// type in both forms: rules, blobs and all ..._param.
void CopyCommonFields(const V1Layer& from, caffe::LayerParameter* to) {
  caffe::LayerParameter copy;
  const auto& reflection = *from.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> set;
  reflection.ListFields(from, &set);
  for (const auto* field : set) {
    const auto* now = to->GetDescriptor()->FindFieldByName(field->name());
    if (now == nullptr || now->message_type() == nullptr ||
        now->message_type() != field->message_type()) {
      continue;
    }
    if (!field->is_repeated()) {
      to->GetReflection()->MutableMessage(to, now)->CopyFrom(reflection.GetMessage(from, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(from, field); ++i) {
      to->GetReflection()->AddMessage(to, now)->CopyFrom(
          reflection.GetRepeatedMessage(from, field, i));
    }
  }
  if (from.has_name()) to->set_name(from.name());
  *to->mutable_bottom() = from.bottom();
  *to->mutable_top() = from.top();
  *to->mutable_loss_weight() = from.loss_weight();
}

// Writes the old lists of names, share modes, learning rates and decays as ParamSpecs.
void CopyParams(const V1Layer& from, caffe::LayerParameter* to) {
  const auto param = [&](int i) {
    while (to->param_size() <= i) to->add_param();
    return to->mutable_param(i);
  };
  for (int i = 0; i < from.param_size(); ++i) param(i)->set_name(from.param(i));
  for (int i = 0; i < from.blob_share_mode_size(); ++i) {
    param(i)->set_share_mode(from.blob_share_mode(i) == V1Layer::PERMISSIVE
                                 ? caffe::ParamSpec::PERMISSIVE
                                 : caffe::ParamSpec::STRICT);
  }
  for (int i = 0; i < from.blobs_lr_size(); ++i) param(i)->set_lr_mult(from.blobs_lr(i));
  for (int i = 0; i < from.weight_decay_size(); ++i) {
    param(i)->set_decay_mult(from.weight_decay(i));
  }
}

// Moves scale, mean_file, crop_size and mirror, which old files have in the data layer's own
// message, to transform_param.
template <class Param>
void MoveTransform(Param* data, caffe::LayerParameter* layer) {
  const auto transform = [&] { return layer->mutable_transform_param(); };
  if (data->has_scale()) transform()->set_scale(data->scale());
  if (data->has_mean_file()) transform()->set_mean_file(data->mean_file());
  if (data->has_crop_size()) transform()->set_crop_size(data->crop_size());
  if (data->has_mirror()) transform()->set_mirror(data->mirror());
  data->clear_scale();
  data->clear_mean_file();
  data->clear_crop_size();
  data->clear_mirror();
}

}  // namespace

caffe::LayerParameter RewriteOld(const OldLayer& old) {
  const auto type = TypeNames().find(old.proto.type());
  if (!old.proto.has_type() || type == TypeNames().end()) {
    throw Error(ErrorCode::kConfig, old.where,
                Join("layer '", old.proto.name(), "' has no type; write e.g. type: CONVOLUTION in ",
                     "'layers', or type: \"Convolution\" in 'layer'"));
  }
  caffe::LayerParameter layer;
  layer.set_type(type->second);
  CopyCommonFields(old.proto, &layer);
  CopyParams(old.proto, &layer);
  if (old.proto.type() == V1Layer::DATA) MoveTransform(layer.mutable_data_param(), &layer);
  if (old.proto.type() == V1Layer::IMAGE_DATA) {
    MoveTransform(layer.mutable_image_data_param(), &layer);
  }
  if (old.proto.type() == V1Layer::WINDOW_DATA) {
    MoveTransform(layer.mutable_window_data_param(), &layer);
  }
  return layer;
}

namespace {

// Warns if the data layer's own message `name` sets a field that belongs to transform_param.
template <class Param>
void WarnOf(const LayerSpec& layer, const char* name, const Param& data, Upgrades* upgrades) {
  std::vector<std::string> fields;
  if (data.has_scale()) fields.emplace_back("scale");
  if (data.has_mean_file()) fields.emplace_back("mean_file");
  if (data.has_crop_size()) fields.emplace_back("crop_size");
  if (data.has_mirror()) fields.emplace_back("mirror");
  if (fields.empty()) return;
  upgrades->warnings.push_back(Join(layer.WhereIn(name, fields[0]).ToString(), ": layer '",
                                    layer.name(), "' (", layer.type(), "): ", JoinList(fields),
                                    " in ", name, fields.size() == 1 ? " is" : " are",
                                    " ignored, as in Caffe; write transform_param { ",
                                    JoinList(fields, ": ... "), ": ... } instead"));
}

}  // namespace

void WarnOfOldTransform(const LayerSpec& layer, Upgrades* upgrades) {
  const caffe::LayerParameter& proto = layer.proto();
  if (layer.type() == "Data") WarnOf(layer, "data_param", proto.data_param(), upgrades);
  if (layer.type() == "ImageData") {
    WarnOf(layer, "image_data_param", proto.image_data_param(), upgrades);
  }
  if (layer.type() == "WindowData") {
    WarnOf(layer, "window_data_param", proto.window_data_param(), upgrades);
  }
}

}  // namespace trainer
