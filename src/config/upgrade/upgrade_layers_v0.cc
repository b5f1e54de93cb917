// Rewrites the oldest form (V0LayerParameter inside V1LayerParameter) with numbered types.
#include <google/protobuf/descriptor.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "trainer/base/text/text.h"
#include "upgrade/upgrade_layers.h"

namespace trainer {
namespace {

using New = caffe::V1LayerParameter;
using V0Layer = caffe::V0LayerParameter;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Returns the numbered type of each type of the oldest form.
const std::map<std::string, New::LayerType>& Types() {
  static const std::map<std::string, New::LayerType> types = {
      {"accuracy", New::ACCURACY},
      {"bnll", New::BNLL},
      {"concat", New::CONCAT},
      {"conv", New::CONVOLUTION},
      {"data", New::DATA},
      {"dropout", New::DROPOUT},
      {"euclidean_loss", New::EUCLIDEAN_LOSS},
      {"flatten", New::FLATTEN},
      {"hdf5_data", New::HDF5_DATA},
      {"hdf5_output", New::HDF5_OUTPUT},
      {"im2col", New::IM2COL},
      {"images", New::IMAGE_DATA},
      {"infogain_loss", New::INFOGAIN_LOSS},
      {"innerproduct", New::INNER_PRODUCT},
      {"lrn", New::LRN},
      {"multinomial_logistic_loss", New::MULTINOMIAL_LOGISTIC_LOSS},
      {"pool", New::POOLING},
      {"relu", New::RELU},
      {"sigmoid", New::SIGMOID},
      {"softmax", New::SOFTMAX},
      {"softmax_loss", New::SOFTMAX_LOSS},
      {"split", New::SPLIT},
      {"tanh", New::TANH},
      {"window_data", New::WINDOW_DATA},
  };
  return types;
}

// Maps a field of the oldest form to a field of one type of layer. A field may have several rows.
struct Move {
  const char* from;
  New::LayerType type;
  const char* to;  // in the type's own message
};

constexpr Move kMoves[] = {
    {"num_output", New::CONVOLUTION, "num_output"},
    {"num_output", New::INNER_PRODUCT, "num_output"},
    {"biasterm", New::CONVOLUTION, "bias_term"},
    {"biasterm", New::INNER_PRODUCT, "bias_term"},
    {"weight_filler", New::CONVOLUTION, "weight_filler"},
    {"weight_filler", New::INNER_PRODUCT, "weight_filler"},
    {"bias_filler", New::CONVOLUTION, "bias_filler"},
    {"bias_filler", New::INNER_PRODUCT, "bias_filler"},
    {"pad", New::CONVOLUTION, "pad"},
    {"pad", New::POOLING, "pad"},
    {"pad", New::IM2COL, "pad"},
    {"kernelsize", New::CONVOLUTION, "kernel_size"},
    {"kernelsize", New::POOLING, "kernel_size"},
    {"kernelsize", New::IM2COL, "kernel_size"},
    {"group", New::CONVOLUTION, "group"},
    {"stride", New::CONVOLUTION, "stride"},
    {"stride", New::POOLING, "stride"},
    {"stride", New::IM2COL, "stride"},
    {"pool", New::POOLING, "pool"},
    {"dropout_ratio", New::DROPOUT, "dropout_ratio"},
    {"local_size", New::LRN, "local_size"},
    {"alpha", New::LRN, "alpha"},
    {"beta", New::LRN, "beta"},
    {"k", New::LRN, "k"},
    {"source", New::DATA, "source"},
    {"source", New::HDF5_DATA, "source"},
    {"source", New::IMAGE_DATA, "source"},
    {"source", New::WINDOW_DATA, "source"},
    {"source", New::INFOGAIN_LOSS, "source"},
    {"batchsize", New::DATA, "batch_size"},
    {"batchsize", New::HDF5_DATA, "batch_size"},
    {"batchsize", New::IMAGE_DATA, "batch_size"},
    {"batchsize", New::WINDOW_DATA, "batch_size"},
    {"rand_skip", New::DATA, "rand_skip"},
    {"rand_skip", New::IMAGE_DATA, "rand_skip"},
    {"shuffle_images", New::IMAGE_DATA, "shuffle"},
    {"new_height", New::IMAGE_DATA, "new_height"},
    {"new_width", New::IMAGE_DATA, "new_width"},
    {"concat_dim", New::CONCAT, "concat_dim"},
    {"det_fg_threshold", New::WINDOW_DATA, "fg_threshold"},
    {"det_bg_threshold", New::WINDOW_DATA, "bg_threshold"},
    {"det_fg_fraction", New::WINDOW_DATA, "fg_fraction"},
    {"det_context_pad", New::WINDOW_DATA, "context_pad"},
    {"det_crop_mode", New::WINDOW_DATA, "crop_mode"},
};

// Returns the fields that move to transform_param for every type, and their names there.
const std::map<std::string, const char*>& TransformMoves() {
  static const std::map<std::string, const char*> moves = {
      {"scale", "scale"},
      {"meanfile", "mean_file"},
      {"cropsize", "crop_size"},
      {"mirror", "mirror"},
  };
  return moves;
}

// Returns the message of a type that has rows in kMoves, and creates it if it is not set.
Message* MessageOf(New::LayerType type, New* layer) {
  switch (type) {
    case New::CONVOLUTION:
    case New::IM2COL:
      return layer->mutable_convolution_param();
    case New::INNER_PRODUCT:
      return layer->mutable_inner_product_param();
    case New::POOLING:
      return layer->mutable_pooling_param();
    case New::DROPOUT:
      return layer->mutable_dropout_param();
    case New::LRN:
      return layer->mutable_lrn_param();
    case New::DATA:
      return layer->mutable_data_param();
    case New::HDF5_DATA:
      return layer->mutable_hdf5_data_param();
    case New::IMAGE_DATA:
      return layer->mutable_image_data_param();
    case New::WINDOW_DATA:
      return layer->mutable_window_data_param();
    case New::INFOGAIN_LOSS:
      return layer->mutable_infogain_loss_param();
    case New::CONCAT:
      return layer->mutable_concat_param();
    default:
      throw Error(ErrorCode::kInternal, "no message for an old layer's field");
  }
}

// Copies a field that is set in `old` to the field `name` of `to`. Enums keep their number; the
// oldest form has one size where some messages now have a list.
void CopyField(const V0Layer& old, const FieldDescriptor& field, const char* name, Message* to) {
  const auto& from = *old.GetReflection();
  const auto& into = *to->GetReflection();
  const FieldDescriptor* target = to->GetDescriptor()->FindFieldByName(name);
  switch (target->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32: {
      const uint32_t value = field.cpp_type() == FieldDescriptor::CPPTYPE_INT32
                                 ? static_cast<uint32_t>(from.GetInt32(old, &field))
                                 : from.GetUInt32(old, &field);
      return target->is_repeated() ? into.AddUInt32(to, target, value)
                                   : into.SetUInt32(to, target, value);
    }
    case FieldDescriptor::CPPTYPE_ENUM:
      return into.SetEnumValue(to, target, from.GetEnumValue(old, &field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return into.SetFloat(to, target, from.GetFloat(old, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return into.SetBool(to, target, from.GetBool(old, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return into.SetString(to, target, from.GetString(old, &field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return into.MutableMessage(to, target)->CopyFrom(from.GetMessage(old, &field));
    default:
      throw Error(ErrorCode::kInternal, Join("the old field ", field.name(), " has no rule"));
  }
}

// Moves one field to its new place. Returns false if it has no meaning for this type.
bool MoveField(const V0Layer& old, const FieldDescriptor& field, New* layer) {
  const auto transform = TransformMoves().find(field.name());
  if (transform != TransformMoves().end()) {
    CopyField(old, field, transform->second, layer->mutable_transform_param());
    return true;
  }
  if (field.name() == "hdf5_output_param" && layer->type() == New::HDF5_OUTPUT) {
    *layer->mutable_hdf5_output_param() = old.hdf5_output_param();
    return true;
  }
  for (const Move& move : kMoves) {
    if (move.type != layer->type() || field.name() != move.from) continue;
    CopyField(old, field, move.to, MessageOf(move.type, layer));
    return true;
  }
  return false;
}

// Moves all fields that are set. Warns of those that have no meaning for the layer's type.
void MoveFields(const V0Layer& old, const SourceRef& where, New* layer, Upgrades* upgrades) {
  static const std::set<std::string> common = {"name", "type", "blobs", "blobs_lr", "weight_decay"};
  std::vector<const FieldDescriptor*> set;
  old.GetReflection()->ListFields(old, &set);
  for (const FieldDescriptor* field : set) {
    if (common.contains(field->name()) || MoveField(old, *field, layer)) continue;
    upgrades->warnings.push_back(Join(where.ToString(), ": layer '", old.name(), "': the field ",
                                      field->name(), " has no meaning for the old type '",
                                      old.type(), "' and is removed"));
  }
}

// Returns the layer with a numbered type. Throws kConfig for an unknown type, with the nearest one.
New RewriteV0Layer(const OldLayer& layer, Upgrades* upgrades) {
  const V0Layer& old = layer.proto.layer();
  const auto type = Types().find(old.type());
  if (type == Types().end()) {
    std::vector<std::string> names;
    for (const auto& entry : Types()) names.push_back(entry.first);
    throw Error(ErrorCode::kConfig, layer.where,
                Join("layer '", old.name(), "' has the unknown type '", old.type(), "'.",
                     DidYouMean(old.type(), names)));
  }
  New now = layer.proto;
  now.clear_layer();
  if (old.has_name()) now.set_name(old.name());
  now.set_type(type->second);
  now.mutable_blobs()->MergeFrom(old.blobs());
  now.mutable_blobs_lr()->MergeFrom(old.blobs_lr());
  now.mutable_weight_decay()->MergeFrom(old.weight_decay());
  MoveFields(old, layer.where, &now, upgrades);
  return now;
}

bool IsPadding(const OldLayer& layer) {
  return layer.proto.has_layer() && layer.proto.layer().type() == "padding";
}

// Puts the pad of the padding layer `from` into `into`, which reads its output.
void Fold(const OldLayer& from, int bottom, OldLayer* into) {
  V0Layer* reader = into->proto.mutable_layer();
  if (from.proto.bottom_size() != 1 || (reader->type() != "conv" && reader->type() != "pool")) {
    throw Error(
        ErrorCode::kConfig, from.where,
        Join("the old layer '", from.proto.layer().name(), "' (padding) needs one input and ",
             "a reader of type conv or pool; write pad in the reader and remove it"));
  }
  reader->set_pad(from.proto.layer().pad());
  into->proto.set_bottom(bottom, from.proto.bottom(0));
}

}  // namespace

std::vector<OldLayer> RewriteOldest(std::vector<OldLayer> layers, Upgrades* upgrades) {
  std::map<std::string, OldLayer> paddings;  // by output; a later writer of the name ends it
  std::vector<OldLayer> out;
  for (OldLayer& layer : layers) {
    for (int i = 0; i < layer.proto.bottom_size(); ++i) {
      const auto padding = paddings.find(layer.proto.bottom(i));
      if (padding != paddings.end()) Fold(padding->second, i, &layer);
    }
    for (const std::string& top : layer.proto.top()) paddings.erase(top);
    if (IsPadding(layer)) {
      for (const std::string& top : layer.proto.top()) paddings.insert({top, layer});
      continue;
    }
    if (layer.proto.has_layer()) layer.proto = RewriteV0Layer(layer, upgrades);
    out.push_back(std::move(layer));
  }
  return out;
}

}  // namespace trainer
