// The warning about layers that a GPU computes without its libraries.

#include "own_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/gpu.h"

#ifdef TRAINER_CUDA_EMULATED
#include <emulated_gpu.h>
#endif

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kOwnKernelsNet[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param {
  shape { dim: 2 dim: 3 dim: 8 dim: 8 } shape { dim: 2 } data_filler { type: "gaussian" } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
        convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
        inner_product_param { num_output: 5 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "y" top: "loss" }
)";

std::string WarningOn(const Device& device, const std::string& text = kOwnKernelsNet) {
  ParamStore params(device);
  const Net net(NetFromText(text), QuietOptions(caffe::TRAIN), device, params);
  return DescribeOwnKernels(net, device);
}

TEST(OwnKernelsTest, TheCpuHasNoWarning) { EXPECT_EQ(WarningOn(*MakeCpuDevice(1)), ""); }

#ifdef TRAINER_CUDA_EMULATED
TEST(OwnKernelsTest, ALibraryThatComputesAllIsNotWarnedOf) {
  emulated_gpu::Reset();
  EXPECT_EQ(WarningOn(*MakeGpuDevice({})), "");
}

// The library has an algorithm for the forward pass, but not for the gradient of the input.
TEST(OwnKernelsTest, OneDirectionThatALibraryDeclinesIsEnough) {
  emulated_gpu::Reset();
  emulated_gpu::RefuseLibraryCalls("cudnnGetConvolutionBackwardData");
  EXPECT_THAT(
      WarningOn(*MakeGpuDevice({})),
      AllOf(HasSubstr("slower than those of cuDNN and cuBLAS: 'conv'; the first one because of "),
            HasSubstr("net.prototxt:4:1: data gradient: cuDNN: "), Not(HasSubstr("'ip'"))));
  emulated_gpu::Reset();
}

TEST(OwnKernelsTest, AllLayersAreNamed) {
  emulated_gpu::Reset();
  emulated_gpu::RefuseLibraryCalls("cudnnGet");
  emulated_gpu::RefuseLibraryCalls("cublasLtMatmulAlgo");
  EXPECT_THAT(WarningOn(*MakeGpuDevice({})), HasSubstr("cuBLAS: 'conv', 'ip'; "));
  emulated_gpu::Reset();
}

TEST(OwnKernelsTest, TheProductsOfAttentionAndMatMulCount) {
  constexpr char kSequences[] = R"(
layer { name: "data" type: "DummyData" top: "x" dummy_data_param {
  shape { dim: 2 dim: 4 dim: 8 } data_filler { type: "gaussian" } } }
layer { name: "mix" type: "MultiHeadAttention" bottom: "x" top: "mixed"
        attention_param { num_heads: 2 } }
layer { name: "product" type: "MatMul" bottom: "mixed" bottom: "x" top: "product"
        matmul_param { transpose_b: true } }
layer { name: "loss" type: "Reduction" bottom: "product" top: "loss" loss_weight: 1 }
)";
  emulated_gpu::Reset();
  EXPECT_EQ(WarningOn(*MakeGpuDevice({}), kSequences), "");
  emulated_gpu::RefuseLibraryCalls("cublasLtMatmulAlgo");
  EXPECT_THAT(WarningOn(*MakeGpuDevice({}), kSequences),
              AllOf(HasSubstr("cuBLAS: 'mix', 'product'; the first one because of "),
                    HasSubstr("net.prototxt:4:1: input projection: cublasLt: ")));
  emulated_gpu::Reset();
}
#endif

}  // namespace
}  // namespace trainer
