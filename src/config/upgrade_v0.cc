// From the oldest form (V0LayerParameter inside V1LayerParameter) to numbered types.
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "trainer/base/text.h"
#include "upgrade_layers.h"

namespace trainer {
namespace {

using New = caffe::V1LayerParameter;
using Old = caffe::V0LayerParameter;

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

// Sums that both kinds of weighted layer share.
template <class Param>
void SetWeights(const Old& old, Param* param) {
  if (old.has_num_output()) param->set_num_output(old.num_output());
  if (old.has_biasterm()) param->set_bias_term(old.biasterm());
  if (old.has_weight_filler()) *param->mutable_weight_filler() = old.weight_filler();
  if (old.has_bias_filler()) *param->mutable_bias_filler() = old.bias_filler();
}

void SetConvolution(const Old& old, New* layer) {
  caffe::ConvolutionParameter* param = layer->mutable_convolution_param();
  SetWeights(old, param);
  if (old.has_pad()) param->add_pad(old.pad());
  if (old.has_kernelsize()) param->add_kernel_size(old.kernelsize());
  if (old.has_stride()) param->add_stride(old.stride());
  if (old.has_group()) param->set_group(old.group());
}

void SetPooling(const Old& old, New* layer) {
  caffe::PoolingParameter* param = layer->mutable_pooling_param();
  if (old.has_pad()) param->set_pad(old.pad());
  if (old.has_kernelsize()) param->set_kernel_size(old.kernelsize());
  if (old.has_stride()) param->set_stride(old.stride());
  if (old.has_pool()) {
    param->set_pool(static_cast<caffe::PoolingParameter::PoolMethod>(old.pool()));
  }
}

void SetLrn(const Old& old, New* layer) {
  caffe::LRNParameter* param = layer->mutable_lrn_param();
  if (old.has_local_size()) param->set_local_size(old.local_size());
  if (old.has_alpha()) param->set_alpha(old.alpha());
  if (old.has_beta()) param->set_beta(old.beta());
  if (old.has_k()) param->set_k(old.k());
}

void SetTransform(const Old& old, New* layer) {
  const auto transform = [&] { return layer->mutable_transform_param(); };
  if (old.has_scale()) transform()->set_scale(old.scale());
  if (old.has_meanfile()) transform()->set_mean_file(old.meanfile());
  if (old.has_cropsize()) transform()->set_crop_size(old.cropsize());
  if (old.has_mirror()) transform()->set_mirror(old.mirror());
}

template <class Param>
void SetSource(const Old& old, Param* param) {
  if (old.has_source()) param->set_source(old.source());
  if (old.has_batchsize()) param->set_batch_size(old.batchsize());
}

void SetImages(const Old& old, New* layer) {
  caffe::ImageDataParameter* param = layer->mutable_image_data_param();
  SetSource(old, param);
  SetTransform(old, layer);
  if (old.has_rand_skip()) param->set_rand_skip(old.rand_skip());
  if (old.has_shuffle_images()) param->set_shuffle(old.shuffle_images());
  if (old.has_new_height()) param->set_new_height(old.new_height());
  if (old.has_new_width()) param->set_new_width(old.new_width());
}

void SetWindows(const Old& old, New* layer) {
  caffe::WindowDataParameter* param = layer->mutable_window_data_param();
  SetSource(old, param);
  SetTransform(old, layer);
  if (old.has_det_fg_threshold()) param->set_fg_threshold(old.det_fg_threshold());
  if (old.has_det_bg_threshold()) param->set_bg_threshold(old.det_bg_threshold());
  if (old.has_det_fg_fraction()) param->set_fg_fraction(old.det_fg_fraction());
  if (old.has_det_context_pad()) param->set_context_pad(old.det_context_pad());
  if (old.has_det_crop_mode()) param->set_crop_mode(old.det_crop_mode());
}

void SetData(const Old& old, New* layer) {
  SetSource(old, layer->mutable_data_param());
  SetTransform(old, layer);
  if (old.has_rand_skip()) layer->mutable_data_param()->set_rand_skip(old.rand_skip());
}

void SetFields(const Old& old, New* layer) {
  switch (layer->type()) {
    case New::CONVOLUTION:
    case New::IM2COL:
      return SetConvolution(old, layer);
    case New::INNER_PRODUCT:
      return SetWeights(old, layer->mutable_inner_product_param());
    case New::POOLING:
      return SetPooling(old, layer);
    case New::LRN:
      return SetLrn(old, layer);
    case New::DATA:
      return SetData(old, layer);
    case New::IMAGE_DATA:
      return SetImages(old, layer);
    case New::WINDOW_DATA:
      return SetWindows(old, layer);
    case New::HDF5_DATA:
      return SetSource(old, layer->mutable_hdf5_data_param());
    case New::HDF5_OUTPUT:
      *layer->mutable_hdf5_output_param() = old.hdf5_output_param();
      return;
    case New::DROPOUT:
      if (old.has_dropout_ratio()) {
        layer->mutable_dropout_param()->set_dropout_ratio(old.dropout_ratio());
      }
      return;
    case New::CONCAT:
      if (old.has_concat_dim()) layer->mutable_concat_param()->set_concat_dim(old.concat_dim());
      return;
    case New::INFOGAIN_LOSS:
      if (old.has_source()) layer->mutable_infogain_loss_param()->set_source(old.source());
      return;
    default:
      return;
  }
}

New Rewrite(const OldLayer& layer) {
  const Old& old = layer.proto.layer();
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
  SetFields(old, &now);
  return now;
}

bool IsPadding(const OldLayer& layer) {
  return layer.proto.has_layer() && layer.proto.layer().type() == "padding";
}

// Puts the pad of the padding layer `from` into `into`, which reads its output.
void Fold(const OldLayer& from, int bottom, OldLayer* into) {
  Old* reader = into->proto.mutable_layer();
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

std::vector<OldLayer> RewriteOldest(std::vector<OldLayer> layers) {
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
    if (layer.proto.has_layer()) layer.proto = Rewrite(layer);
    out.push_back(std::move(layer));
  }
  return out;
}

}  // namespace trainer
