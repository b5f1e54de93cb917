// From numbered types (V1LayerParameter) to LayerParameter.
#include <google/protobuf/descriptor.h>

#include <map>
#include <string>

#include "trainer/base/text.h"
#include "upgrade_layers.h"

namespace trainer {
namespace {

using Old = caffe::V1LayerParameter;

const std::map<int, const char*>& TypeNames() {
  static const std::map<int, const char*> names = {
      {Old::ABSVAL, "AbsVal"},
      {Old::ACCURACY, "Accuracy"},
      {Old::ARGMAX, "ArgMax"},
      {Old::BNLL, "BNLL"},
      {Old::CONCAT, "Concat"},
      {Old::CONTRASTIVE_LOSS, "ContrastiveLoss"},
      {Old::CONVOLUTION, "Convolution"},
      {Old::DATA, "Data"},
      {Old::DECONVOLUTION, "Deconvolution"},
      {Old::DROPOUT, "Dropout"},
      {Old::DUMMY_DATA, "DummyData"},
      {Old::ELTWISE, "Eltwise"},
      {Old::EUCLIDEAN_LOSS, "EuclideanLoss"},
      {Old::EXP, "Exp"},
      {Old::FLATTEN, "Flatten"},
      {Old::HDF5_DATA, "HDF5Data"},
      {Old::HDF5_OUTPUT, "HDF5Output"},
      {Old::HINGE_LOSS, "HingeLoss"},
      {Old::IM2COL, "Im2col"},
      {Old::IMAGE_DATA, "ImageData"},
      {Old::INFOGAIN_LOSS, "InfogainLoss"},
      {Old::INNER_PRODUCT, "InnerProduct"},
      {Old::LRN, "LRN"},
      {Old::MEMORY_DATA, "MemoryData"},
      {Old::MULTINOMIAL_LOGISTIC_LOSS, "MultinomialLogisticLoss"},
      {Old::MVN, "MVN"},
      {Old::POOLING, "Pooling"},
      {Old::POWER, "Power"},
      {Old::RELU, "ReLU"},
      {Old::SIGMOID, "Sigmoid"},
      {Old::SIGMOID_CROSS_ENTROPY_LOSS, "SigmoidCrossEntropyLoss"},
      {Old::SILENCE, "Silence"},
      {Old::SLICE, "Slice"},
      {Old::SOFTMAX, "Softmax"},
      {Old::SOFTMAX_LOSS, "SoftmaxWithLoss"},
      {Old::SPLIT, "Split"},
      {Old::TANH, "TanH"},
      {Old::THRESHOLD, "Threshold"},
      {Old::WINDOW_DATA, "WindowData"},
  };
  return names;
}

// Fields of one name and one type move over as they are; that covers names, bottoms, tops, rules
// and all ..._param messages.
void CopyCommonFields(const Old& from, caffe::LayerParameter* to) {
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

void CopyParams(const Old& from, caffe::LayerParameter* to) {
  const auto param = [&](int i) {
    while (to->param_size() <= i) to->add_param();
    return to->mutable_param(i);
  };
  for (int i = 0; i < from.param_size(); ++i) param(i)->set_name(from.param(i));
  for (int i = 0; i < from.blob_share_mode_size(); ++i) {
    param(i)->set_share_mode(from.blob_share_mode(i) == Old::PERMISSIVE
                                 ? caffe::ParamSpec::PERMISSIVE
                                 : caffe::ParamSpec::STRICT);
  }
  for (int i = 0; i < from.blobs_lr_size(); ++i) param(i)->set_lr_mult(from.blobs_lr(i));
  for (int i = 0; i < from.weight_decay_size(); ++i) {
    param(i)->set_decay_mult(from.weight_decay(i));
  }
}

// scale, mean_file, crop_size and mirror once stood in the data layer's own message.
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
  if (old.proto.type() == Old::DATA) MoveTransform(layer.mutable_data_param(), &layer);
  if (old.proto.type() == Old::IMAGE_DATA) {
    MoveTransform(layer.mutable_image_data_param(), &layer);
  }
  if (old.proto.type() == Old::WINDOW_DATA) {
    MoveTransform(layer.mutable_window_data_param(), &layer);
  }
  return layer;
}

namespace {

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
                                    " ignored, as Caffe does; write transform_param { ",
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
