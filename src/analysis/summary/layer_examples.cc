#include "summary/layer_examples.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/config/net_spec.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/net/compile.h"

namespace trainer {
namespace {

// Each example follows a line "# TYPE: inputs". "# TYPE: files" marks a layer that reads files and
// cannot be planned without them.
constexpr std::string_view kExamples = R"(
# AbsVal: data 8x10
layer { name: "abs" type: "AbsVal" bottom: "data" top: "abs" }
# Accuracy: score 8x10, label 8
layer { name: "accuracy" type: "Accuracy" bottom: "score" bottom: "label" top: "accuracy"
        include { phase: TEST } accuracy_param { top_k: 5 } }
# ArgMax: prob 8x10
layer { name: "answer" type: "ArgMax" bottom: "prob" top: "answer" argmax_param { axis: 1 } }
# BNLL: data 8x10
layer { name: "softplus" type: "BNLL" bottom: "data" top: "softplus" }
# BatchNorm: conv1 8x16x14x14
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "bn1"
        batch_norm_param { moving_average_fraction: 0.99 } }
# BatchReindex: data 8x3x32x32, index 4
layer { name: "chosen" type: "BatchReindex" bottom: "data" bottom: "index" top: "chosen" }
# Bias: data 8x16x14x14
layer { name: "bias" type: "Bias" bottom: "data" top: "bias" }
# Clip: data 8x10
layer { name: "relu6" type: "Clip" bottom: "data" top: "relu6" clip_param { min: 0 max: 6 } }
# Concat: a 8x16x14x14, b 8x32x14x14
layer { name: "both" type: "Concat" bottom: "a" bottom: "b" top: "both" }
# ContrastiveLoss: feature_a 8x2, feature_b 8x2, alike 8
layer { name: "loss" type: "ContrastiveLoss" bottom: "feature_a" bottom: "feature_b" bottom: "alike"
        top: "loss" contrastive_loss_param { margin: 1 } }
# Convolution: data 8x3x32x32
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 16 kernel_size: 5 stride: 2 pad: 2
                            weight_filler { type: "msra" } } }
# ConvolutionDepthwise: conv1 8x16x14x14
layer { name: "conv2" type: "ConvolutionDepthwise" bottom: "conv1" top: "conv2"
        convolution_param { kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
# Crop: large 8x16x32x32, small 8x16x28x28
layer { name: "crop" type: "Crop" bottom: "large" bottom: "small" top: "crop"
        crop_param { axis: 2 offset: 2 } }
# Data: files
layer { name: "digits" type: "Data" top: "data" top: "label"
        transform_param { scale: 0.00390625 }
        data_param { source: "digits/train_lmdb" backend: LMDB batch_size: 64 shuffle: true } }
# Deconvolution: score 8x10x16x16
layer { name: "larger" type: "Deconvolution" bottom: "score" top: "larger" param { lr_mult: 0 }
        convolution_param { num_output: 10 group: 10 kernel_size: 4 stride: 2 pad: 1
                            bias_term: false weight_filler { type: "bilinear" } } }
# DepthwiseConvolution: conv1 8x16x14x14
layer { name: "conv2" type: "DepthwiseConvolution" bottom: "conv1" top: "conv2"
        convolution_param { kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
# DetectionOutput: location 1x16, confidence 1x8, boxes 1x2x16
layer { name: "found" type: "DetectionOutput" bottom: "location" bottom: "confidence"
        bottom: "boxes" top: "found"
        detection_output_param { num_classes: 2 code_type: CENTER_SIZE confidence_threshold: 0.1
                                 keep_top_k: 200 nms_param { nms_threshold: 0.45 top_k: 400 } } }
# DiceLoss: prob 8x3x64x64, mask 8x1x64x64
layer { name: "loss" type: "DiceLoss" bottom: "prob" bottom: "mask" top: "loss"
        loss_param { ignore_label: 255 } }
# DropPath: branch 8x16x14x14
layer { name: "path1" type: "DropPath" bottom: "branch" top: "branch"
        drop_path_param { drop_ratio: 0.1 } }
# Dropout: fc1 8x64
layer { name: "drop1" type: "Dropout" bottom: "fc1" top: "fc1"
        dropout_param { dropout_ratio: 0.3 } }
# DummyData:
layer { name: "noise" type: "DummyData" top: "noise"
        dummy_data_param { shape { dim: 8 dim: 100 } data_filler { type: "gaussian" std: 1 } } }
# ELU: data 8x10
layer { name: "elu" type: "ELU" bottom: "data" top: "elu" elu_param { alpha: 1 } }
# Eltwise: a 8x16x14x14, b 8x16x14x14
layer { name: "sum" type: "Eltwise" bottom: "a" bottom: "b" top: "sum"
        eltwise_param { operation: SUM } }
# Embed: word 20x8
layer { name: "vectors" type: "Embed" bottom: "word" top: "vectors"
        embed_param { input_dim: 1000 num_output: 32 weight_filler { type: "xavier" } } }
# EuclideanLoss: answer 8x1, target 8x1
layer { name: "loss" type: "EuclideanLoss" bottom: "answer" bottom: "target" top: "loss" }
# Exp: data 8x10
layer { name: "exp" type: "Exp" bottom: "data" top: "exp" }
# Filter: data 8x3x32x32, keep 8x1
layer { name: "kept" type: "Filter" bottom: "data" bottom: "keep" top: "kept" }
# Flatten: pool 8x16x7x7
layer { name: "flat" type: "Flatten" bottom: "pool" top: "flat" }
# GELU: data 8x10
layer { name: "gelu" type: "GELU" bottom: "data" top: "gelu" }
# Gram: conv1 1x64x32x32
layer { name: "gram" type: "Gram" bottom: "conv1" top: "gram" }
# GroupNorm: conv1 8x32x14x14
layer { name: "gn1" type: "GroupNorm" bottom: "conv1" top: "gn1" group_norm_param { groups: 8 } }
# HDF5Data: files
layer { name: "table" type: "HDF5Data" top: "data" top: "label"
        hdf5_data_param { source: "digits.txt" batch_size: 64 shuffle: true } }
# HDF5Output: score 8x10, label 8
layer { name: "write" type: "HDF5Output" bottom: "score" bottom: "label"
        hdf5_output_param { file_name: "scores.h5" } }
# HardSwish: data 8x10
layer { name: "swish" type: "HardSwish" bottom: "data" top: "swish" }
# HingeLoss: score 8x10, label 8
layer { name: "loss" type: "HingeLoss" bottom: "score" bottom: "label" top: "loss"
        hinge_loss_param { norm: L2 } }
# Im2col: data 8x3x32x32
layer { name: "windows" type: "Im2col" bottom: "data" top: "windows"
        convolution_param { kernel_size: 5 stride: 2 } }
# ImageData: files
layer { name: "photos" type: "ImageData" top: "data" top: "label"
        transform_param { crop_size: 40 mean_value: 128 }
        image_data_param { source: "photos.txt" root_folder: "photos/" batch_size: 32
                           new_height: 48 new_width: 48 shuffle: true } }
# InfogainLoss: score 8x10, label 8, matrix 1x1x10x10
layer { name: "loss" type: "InfogainLoss" bottom: "score" bottom: "label" bottom: "matrix"
        top: "loss" }
# InnerProduct: pool 8x16x7x7
layer { name: "score" type: "InnerProduct" bottom: "pool" top: "score"
        inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
# Input:
layer { name: "input" type: "Input" top: "data"
        input_param { shape { dim: 1 dim: 3 dim: 224 dim: 224 } } }
# Interp: score 8x21x33x33
layer { name: "larger" type: "Interp" bottom: "score" top: "larger"
        interp_param { height: 257 width: 257 } }
# KLDivergenceLoss: score 8x10, teacher 8x10
layer { name: "loss" type: "KLDivergenceLoss" bottom: "score" bottom: "teacher" top: "loss" }
# L1Loss: value 8x1, target 8x1
layer { name: "loss" type: "L1Loss" bottom: "value" bottom: "target" top: "loss" }
# LRN: conv1 8x96x27x27
layer { name: "norm1" type: "LRN" bottom: "conv1" top: "norm1"
        lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 } }
# LSTM: x 20x8x32, cont 20x8
layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "lstm"
        recurrent_param { num_output: 64 weight_filler { type: "uniform" min: -0.1 max: 0.1 } } }
# LSTMUnit: c_before 1x8x64, gates 1x8x256, cont 1x8
layer { name: "unit" type: "LSTMUnit" bottom: "c_before" bottom: "gates" bottom: "cont"
        top: "c" top: "h" }
# LayerNorm: x 8x20x64
layer { name: "norm" type: "LayerNorm" bottom: "x" top: "norm" layer_norm_param { axis: -1 } }
# Log: prob 8x10
layer { name: "log" type: "Log" bottom: "prob" top: "log" }
# MVN: data 8x3x32x32
layer { name: "contrast" type: "MVN" bottom: "data" top: "contrast" }
# MatMul: query 8x20x64, key 8x20x64
layer { name: "score" type: "MatMul" bottom: "query" bottom: "key" top: "score"
        matmul_param { transpose_b: true } }
# MemoryData:
layer { name: "images" type: "MemoryData" top: "data" top: "label"
        memory_data_param { batch_size: 8 channels: 3 height: 32 width: 32 } }
# Mish: data 8x10
layer { name: "mish" type: "Mish" bottom: "data" top: "mish" }
# MultiHeadAttention: x 8x20x64
layer { name: "attention" type: "MultiHeadAttention" bottom: "x" top: "attention"
        attention_param { num_heads: 4 weight_filler { type: "xavier" } } }
# MultinomialLogisticLoss: prob 8x10, label 8
layer { name: "loss" type: "MultinomialLogisticLoss" bottom: "prob" bottom: "label" top: "loss" }
# Noise: data 8x784
layer { name: "noisy" type: "Noise" bottom: "data" top: "noisy"
        noise_param { kind: GAUSSIAN amount: 0.3 } }
# Normalize: conv4 8x512x38x38
layer { name: "norm" type: "Normalize" bottom: "conv4" top: "norm"
        norm_param { across_spatial: false channel_shared: false
                     scale_filler { type: "constant" value: 20 } } }
# PReLU: conv1 8x16x14x14
layer { name: "prelu1" type: "PReLU" bottom: "conv1" top: "prelu1" }
# PSROIPooling: score 1x189x38x50, region 300x5
layer { name: "cells" type: "PSROIPooling" bottom: "score" bottom: "region" top: "cells"
        psroi_pooling_param { output_dim: 21 group_size: 3 spatial_scale: 0.0625 } }
# Parameter:
layer { name: "token" type: "Parameter" top: "token"
        parameter_param { shape { dim: 1 dim: 64 } filler { type: "gaussian" std: 0.02 } } }
# Permute: conv1 8x16x14x20
layer { name: "last" type: "Permute" bottom: "conv1" top: "last"
        permute_param { order: 0 order: 2 order: 3 order: 1 } }
# Pooling: conv1 8x16x28x28
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
        pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
# Power: data 8x10
layer { name: "centred" type: "Power" bottom: "data" top: "centred"
        power_param { scale: 2 shift: -1 } }
# PriorBox: conv4 1x512x38x38, data 1x3x300x300
layer { name: "boxes" type: "PriorBox" bottom: "conv4" bottom: "data" top: "boxes"
        prior_box_param { min_size: 30 max_size: 60 aspect_ratio: 2 flip: true step: 8
                          variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 } }
# RBM: data 8x784
layer { name: "rbm" type: "RBM" bottom: "data" top: "hidden" top: "error"
        loss_weight: 0 loss_weight: 1
        rbm_param { num_output: 64 weight_filler { type: "gaussian" std: 0.01 } } }
# RNN: x 20x8x32, cont 20x8
layer { name: "rnn" type: "RNN" bottom: "x" bottom: "cont" top: "rnn"
        recurrent_param { num_output: 64 weight_filler { type: "uniform" min: -0.1 max: 0.1 } } }
# ROIPooling: conv5 1x256x38x50, region 300x5
layer { name: "cells" type: "ROIPooling" bottom: "conv5" bottom: "region" top: "cells"
        roi_pooling_param { pooled_h: 6 pooled_w: 6 spatial_scale: 0.0625 } }
# ReLU: conv1 8x16x14x14
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
# Reduction: data 8x10
layer { name: "mean" type: "Reduction" bottom: "data" top: "mean"
        reduction_param { operation: MEAN axis: 1 } }
# Reorg: conv1 8x64x26x26
layer { name: "reorg" type: "Reorg" bottom: "conv1" top: "reorg" reorg_param { stride: 2 } }
# Reshape: data 8x784
layer { name: "image" type: "Reshape" bottom: "data" top: "image"
        reshape_param { shape { dim: 0 dim: 1 dim: 28 dim: -1 } } }
# SPP: conv5 8x256x13x13
layer { name: "spp" type: "SPP" bottom: "conv5" top: "spp"
        spp_param { pool: MAX pyramid_height: 3 } }
# Scale: bn1 8x16x14x14
layer { name: "scale1" type: "Scale" bottom: "bn1" top: "scale1" scale_param { bias_term: true } }
# SiLU: data 8x10
layer { name: "silu" type: "SiLU" bottom: "data" top: "silu" }
# Sigmoid: score 8x10
layer { name: "prob" type: "Sigmoid" bottom: "score" top: "prob" }
# SigmoidCrossEntropyLoss: score 8x5, target 8x5
layer { name: "loss" type: "SigmoidCrossEntropyLoss" bottom: "score" bottom: "target" top: "loss" }
# SigmoidFocalLoss: score 8x10, target 8x10
layer { name: "loss" type: "SigmoidFocalLoss" bottom: "score" bottom: "target" top: "loss"
        focal_loss_param { gamma: 2 alpha: 0.25 } loss_param { normalization: FULL } }
# Silence: unused 8x10
layer { name: "silence" type: "Silence" bottom: "unused" }
# Slice: pair 8x2x28x28
layer { name: "slice" type: "Slice" bottom: "pair" top: "left" top: "right"
        slice_param { axis: 1 slice_point: 1 } }
# SmoothL1Loss: box 8x4, target 8x4
layer { name: "loss" type: "SmoothL1Loss" bottom: "box" bottom: "target" top: "loss"
        smooth_l1_loss_param { sigma: 1 } }
# Softmax: score 8x10
layer { name: "prob" type: "Softmax" bottom: "score" top: "prob" }
# SoftmaxFocalLoss: score 8x10, label 8
layer { name: "loss" type: "SoftmaxFocalLoss" bottom: "score" bottom: "label" top: "loss"
        focal_loss_param { gamma: 2 } }
# SoftmaxWithLoss: score 8x10, label 8
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss"
        loss_param { label_smoothing: 0.1 } }
# Split: data 8x10
layer { name: "split" type: "Split" bottom: "data" top: "a" top: "b" }
# Swish: data 8x10
layer { name: "swish" type: "Swish" bottom: "data" top: "swish" swish_param { beta: 1 } }
# TanH: data 8x10
layer { name: "tanh" type: "TanH" bottom: "data" top: "tanh" }
# Threshold: prob 8x10
layer { name: "yes" type: "Threshold" bottom: "prob" top: "yes" threshold_param { threshold: 0.5 } }
# Tile: data 8x1x28x28
layer { name: "color" type: "Tile" bottom: "data" top: "color" tile_param { axis: 1 tiles: 3 } }
# TotalVariationLoss: image 1x3x224x224
layer { name: "smooth" type: "TotalVariationLoss" bottom: "image" top: "smooth"
        loss_weight: 0.0001 }
# WindowData: files
layer { name: "windows" type: "WindowData" top: "data" top: "label"
        transform_param { crop_size: 40 mirror: true mean_value: 128 }
        window_data_param { source: "windows.txt" batch_size: 32 fg_fraction: 0.25
                            context_pad: 4 } }
)";

// Returns "(8, 3, 32, 32)", or "(scalar)".
std::string ExampleShape(const Shape& shape) {
  std::vector<std::string> lengths;
  for (int axis = 0; axis < shape.Rank(); ++axis) lengths.push_back(Join(shape[axis]));
  return lengths.empty() ? "(scalar)" : Join("(", JoinList(lengths), ")");
}

// Returns the text of an Input layer for "data 8x3x32x32".
std::string ExampleInput(const std::string& input) {
  const std::vector<std::string> parts = SplitList(input, ' ');
  std::string dims;
  for (const std::string& length : SplitList(parts.at(1), 'x')) dims += Join(" dim: ", length);
  return Join("layer { name: \"", parts[0], "_input\" type: \"Input\" top: \"", parts[0],
              "\" input_param { shape {", dims, " } } }\n");
}

// Compiles the example with Input layers for its `inputs`, in phase TEST if it names it, and sets
// the shapes of inputs, outputs and weights.
void PlanExample(const std::string& inputs, LayerExample* example) {
  std::string text;
  for (const std::string& input : SplitList(inputs)) text += ExampleInput(input);
  NetSpec spec;
  ParseTextString("example", text + example->text, &spec.proto);
  for (const caffe::LayerParameter& layer : spec.proto.layer()) {
    spec.layers.emplace_back(layer, SourceRef{"example"});
  }
  spec.proto.clear_layer();
  const std::unique_ptr<Device> device = MakeCpuDevice();
  ParamStore params(*device);
  const bool in_test = example->text.find("phase: TEST") != std::string::npos;
  caffe::NetState state;
  state.set_phase(in_test ? caffe::TEST : caffe::TRAIN);
  const std::unique_ptr<const Graph> graph =
      Compile(spec, {.state = state, .log = false}, *device, params);
  const auto shown = [&](const std::string& name) {
    return Join(name, " ", ExampleShape(graph->Find(name).shape));
  };
  for (const std::string& input : SplitList(inputs)) {
    example->inputs.push_back(shown(input.substr(0, input.find(' '))));
  }
  for (const std::string& top : spec.layers.back().proto().top()) {
    example->outputs.push_back(shown(top));
  }
  for (const Param* param : graph->params) example->weights.push_back(ExampleShape(param->shape));
}

}  // namespace

LayerExample MakeExample(const std::string& type) {
  const std::string head = Join("\n# ", type, ":");
  const size_t start = kExamples.find(head);
  if (start == kExamples.npos) throw Error(ErrorCode::kInternal, Join(type, " has no example"));
  const size_t line_end = kExamples.find('\n', start + 1);
  const size_t end = std::min(kExamples.find("\n# ", line_end), kExamples.size() - 1);
  const std::string_view inputs =
      kExamples.substr(start + head.size(), line_end - start - head.size());
  LayerExample example;
  example.text = kExamples.substr(line_end + 1, end - line_end);
  if (inputs != " files") PlanExample(std::string(inputs), &example);
  return example;
}

}  // namespace trainer
