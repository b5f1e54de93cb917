#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config_testing.h"
#include "support/log_collector.h"
#include "trainer/config/solver_spec.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

class HintsTest : public testing::Test {
 protected:
  NetSpec Load(const std::string& text) {
    const LogCollector log;
    NetSpec net = LoadNet(folder_.Write("n.prototxt", text));
    said_ = log.lines;
    return net;
  }

  TempFolder folder_;
  std::vector<std::string> said_;
};

TEST_F(HintsTest, OfIntelCaffeAreSaidOncePerKind) {
  Load(R"(bn_stats_batch_size: 32
    multinode { model_parallel { layer_from: 'a' layer_to: 'b' num_nodes: 0 } }
    layer { name: 'a' type: 'Convolution' top: 'a'
      convolution_param { num_output: 1 kernel_size: 1
        engine: MKL2017 }
      quantization_param { bw_layer_in: 8 scale_params: [1, 2] precision: DYNAMIC_FIXED_POINT } }
    layer { name: 'b' type: 'ReLU' bottom: 'a' top: 'b' relu_param { engine: MKLDNN }
      engine: 'MKLDNN' multinode { num_nodes: 2 } quantization_param { } }
    layer { name: 'c' type: 'Concat' bottom: 'b' top: 'c' concat_param { engine: MKL2017 } }
    layer { name: 'd' type: 'BatchNorm' bottom: 'c' top: 'd' batch_norm_param { engine: MKLDNN } })");
  EXPECT_THAT(
      said_,
      ElementsAre(
          EndsWith("n.prototxt:1:1: bn_stats_batch_size has no effect: a BatchNorm computes the "
                   "statistics of its whole batch"),
          EndsWith("n.prototxt:2:5: multinode has no effect: each machine computes the whole net"),
          EndsWith("n.prototxt:6:7: quantization_param has no effect: layers compute in FLOAT"),
          EndsWith("n.prototxt:5:9: engine has no effect: this program chooses the kernels "
                   "itself")));
}

TEST_F(HintsTest, OfNvidiaCaffeToCudnnAreSaidOncePerKind) {
  Load(R"(default_conv_algos_override: "1,1,1"
    layer { name: 'a' type: 'Convolution' top: 'a' cudnn_math_override: 1
      convolution_param { num_output: 1 kernel_size: 1 conv_algos_override: "0,1,1"
        cudnn_convolution_algo_seeker: GET } }
    layer { name: 'b' type: 'Convolution' top: 'b' cudnn_math_override: 0
      convolution_param { num_output: 1 kernel_size: 1 } })");
  EXPECT_THAT(
      said_,
      ElementsAre(
          EndsWith("n.prototxt:1:1: default_conv_algos_override has no effect: this program "
                   "chooses the kernels itself"),
          EndsWith("n.prototxt:2:52: cudnn_math_override has no effect: "
                   "default_cudnn_math_override of the net, or --tf32, applies to all layers"),
          EndsWith("n.prototxt:3:56: conv_algos_override has no effect: this program chooses the "
                   "kernels itself"),
          EndsWith("n.prototxt:4:9: cudnn_convolution_algo_seeker has no effect: this program "
                   "chooses the kernels itself")));
}

TEST_F(HintsTest, ADataLayerSkipsNoRecords) {
  Load("layer { name: 'd' type: 'Data' top: 'x'\n  data_param { source: 'db' rand_skip: 100 } }");
  EXPECT_THAT(said_, ElementsAre(EndsWith("n.prototxt:2:29: rand_skip has no effect: a Data layer "
                                          "starts at the first record, and ranks read different "
                                          "records")));
}

TEST_F(HintsTest, TheEnginesOfBvlcAndNoHintsAreNoNews) {
  Load("layer { name: 'a' type: 'ReLU' bottom: 'x' top: 'a' relu_param { engine: CUDNN } }");
  EXPECT_THAT(said_, IsEmpty());
}

constexpr char kNorm[] = R"(
    layer { name: 'n' type: 'BatchNorm' bottom: 'x' top: 'x'
            batch_norm_param { moving_average_fraction: 0.9 filler { value: 0 } )";

TEST_F(HintsTest, ABatchNormsFillerIsThatOfTheScaleBehindIt) {
  const NetSpec net = Load(std::string(kNorm) + R"(bias_filler { value: 3 } } }
    layer { name: 's' type: 'Scale' bottom: 'x' top: 'x' scale_param { bias_term: true } }
    layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'x' })");
  const caffe::BatchNormParameter& norm = net.layers[0].proto().batch_norm_param();
  EXPECT_FALSE(norm.has_filler() || norm.has_scale_filler() || norm.has_bias_filler());
  const caffe::ScaleParameter& scale = net.layers[1].proto().scale_param();
  EXPECT_TRUE(scale.has_filler());
  EXPECT_EQ(scale.filler().value(), 0);
  EXPECT_EQ(scale.bias_filler().value(), 3);
  EXPECT_THAT(said_,
              ElementsAre(EndsWith("n.prototxt: rewrote the filler of 1 BatchNorm as the "
                                   "filler of the Scale layer after it, or as scale_filler")));
}

TEST_F(HintsTest, ABatchNormsFillerIsItsOwnWhereNoScaleFollows) {
  for (const char* next : {"",
                           "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' } "
                           "layer { name: 's' type: 'Scale' bottom: 'x' top: 'z' }",
                           "layer { name: 's' type: 'Scale' bottom: 'x' bottom: 'f' top: 'z' }",
                           "layer { name: 's' type: 'Scale' bottom: 'other' top: 'z' }"}) {
    SCOPED_TRACE(next);
    const NetSpec net = Load(std::string(kNorm) + "} } " + next);
    const caffe::BatchNormParameter& norm = net.layers[0].proto().batch_norm_param();
    EXPECT_TRUE(norm.has_scale_filler() && !norm.has_filler());
    EXPECT_EQ(norm.scale_filler().value(), 0);
  }
}

TEST_F(HintsTest, ABatchNormsTwoFillersAreRefused) {
  const Caught caught = CatchConfig([&] { Load(std::string(kNorm) + "scale_filler { } } }"); });
  EXPECT_THAT(caught.text, HasSubstr("n.prototxt:3:61: layer 'n' (BatchNorm): filler and "
                                     "scale_filler are both given"));
}

}  // namespace
}  // namespace trainer
