#pragma once
// Nets for tests of passes that a GPU records.

namespace trainer {

// A net with convolutions, pools, LRN, a batch norm with fused layers, dropout and two losses.
inline constexpr char kImages[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label" dummy_data_param {
        shape { dim: 4 dim: 3 dim: 9 dim: 9 } shape { dim: 4 }
        data_filler { type: "gaussian" } data_filler { type: "constant" value: 2 } } }
layer { name: "conv1" type: "Convolution" bottom: "x" top: "conv1"
        convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "msra" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "lrn" type: "LRN" bottom: "conv1" top: "lrn" lrn_param { local_size: 3 } }
layer { name: "pool1" type: "Pooling" bottom: "lrn" top: "pool1"
        pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
        convolution_param { num_output: 6 kernel_size: 3 pad: 1 bias_term: false
                            weight_filler { type: "msra" } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv2" top: "bn" }
layer { name: "scale" type: "Scale" bottom: "bn" top: "scale" scale_param { bias_term: true } }
layer { name: "sum" type: "Eltwise" bottom: "scale" bottom: "pool1" top: "sum" }
layer { name: "relu2" type: "ReLU" bottom: "sum" top: "sum" }
layer { name: "drop" type: "Dropout" bottom: "sum" top: "sum" dropout_param { dropout_ratio: 0.2 } }
layer { name: "ip" type: "InnerProduct" bottom: "sum" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "ip2" type: "InnerProduct" bottom: "pool1" top: "ip2"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss2" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss2"
        loss_weight: 0.3 }
)";

inline constexpr char kSequences[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "cont" top: "wanted"
  dummy_data_param { shape { dim: 3 dim: 4 dim: 5 } shape { dim: 3 dim: 4 }
    shape { dim: 3 dim: 4 dim: 2 } data_filler { type: "gaussian" }
    data_filler { type: "constant" value: 1 } data_filler { type: "gaussian" } } }
layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "lstm"
  recurrent_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "lstm" top: "ip"
  inner_product_param { num_output: 2 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "wanted" top: "loss" }
)";

// If the loss is scaled, the first updates are skipped.
inline constexpr char kTooLarge[] = "global_grad_scale: 1e24 global_grad_scale_adaptive: true ";

}  // namespace trainer
