// Storage types inside a net: the type of each layer, and the casts between types.

#include "trainer/net/f16_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/net_text.h"
#include "support/test_device.h"
#include "support/test_layers.h"
#include "trainer/base/text/text.h"
#include "trainer/net/net.h"
#include "trainer/net/weights.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

struct BuiltStorage {
  NetSpec spec;
  std::unique_ptr<Device> device = MakeTestDevice(1);
  ParamStore params{*device};
  std::unique_ptr<Net> net;

  explicit BuiltStorage(const std::string& text, caffe::Phase phase = caffe::TRAIN)
      : spec(NetFromText(text)) {
    NetOptions options;
    options.state = StateOf(phase);
    options.training = phase == caffe::TRAIN;
    options.memory = BufferReuse::kSeparate;
    options.log = false;
    net = std::make_unique<Net>(spec, options, *device, params);
  }

  std::vector<std::string> Steps() const {
    std::vector<std::string> names;
    for (const Node& node : net->graph().nodes) names.push_back(node.spec.name());
    return names;
  }
  std::vector<std::string> Casts() const {
    std::vector<std::string> names;
    for (const Node& node : net->graph().nodes) {
      if (node.spec.type() == "Cast") names.push_back(node.spec.name());
    }
    return names;
  }
  std::vector<float> Read(const Tensor& value) const {
    std::vector<float> host(static_cast<size_t>(value.Count()));
    net->ReadNchw(value, host);
    return host;
  }
};

const std::string kBf16 = "default_forward_type: BFLOAT16\n";
const std::string kStorageData = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 }
          data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
)";
// Images with labels that the layer declares as labels.
const std::string kMemoryData = R"(
layer { name: "data" type: "MemoryData" top: "x" top: "label"
        memory_data_param { batch_size: 4 channels: 3 height: 2 width: 2 } }
)";

std::string IpStorage(const std::string& name, const std::string& bottom,
                      const std::string& more = "") {
  return Join("layer { name: '", name, "' type: 'InnerProduct' bottom: '", bottom, "' top: '", name,
              "' ", more,
              " inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }");
}
std::string Simple(const std::string& type, const std::string& bottom, const std::string& top,
                   const std::string& more = "") {
  return Join("layer { name: '", top, "' type: '", type, "' bottom: '", bottom, "' top: '", top,
              "' ", more, " }");
}
std::string LossStorage(const std::string& bottom, const std::string& label = "label") {
  return Join("layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: '", bottom, "' bottom: '",
              label, "' top: 'loss' }");
}

TEST(NetStorageTest, CastsStandWhereTypesDiffer) {
  const BuiltStorage b(kBf16 + kStorageData + IpStorage("ip1", "x") +
                       Simple("ReLU", "ip1", "relu") + IpStorage("ip2", "relu") +
                       LossStorage("ip2"));
  EXPECT_THAT(b.Steps(),
              ElementsAre("data", "x as bf16", "ip1", "relu", "ip2", "ip2 as f32", "loss"));
  EXPECT_EQ(b.net->Value("x").dtype, DType::kF32);
  EXPECT_EQ(b.net->Value("relu").dtype, DType::kBF16);
  EXPECT_EQ(b.net->Gradient("relu").dtype, DType::kBF16);
  EXPECT_EQ(b.net->Value("loss").dtype, DType::kF32);
  const BuiltStorage plain(kStorageData + IpStorage("ip1", "x") + Simple("ReLU", "ip1", "relu") +
                           LossStorage("relu"));
  EXPECT_THAT(plain.Casts(), IsEmpty());
}

TEST(NetStorageTest, ALayersOwnTypeHolds) {
  const BuiltStorage inner(kBf16 + kStorageData + IpStorage("ip1", "x") +
                           IpStorage("ip2", "ip1", "forward_type: FLOAT") +
                           IpStorage("ip3", "ip2") + LossStorage("ip3"));
  EXPECT_THAT(inner.Casts(), ElementsAre("x as bf16", "ip1 as f32", "ip2 as bf16", "ip3 as f32"));
  EXPECT_EQ(inner.net->Value("ip2").dtype, DType::kF32);
  const BuiltStorage outer(kStorageData + IpStorage("ip1", "x", "forward_type: BFLOAT16") +
                           IpStorage("ip2", "ip1") + LossStorage("ip2"));
  EXPECT_THAT(outer.Casts(), ElementsAre("x as bf16", "ip1 as f32"));
}

TEST(NetStorageTest, AValueWhoseReadersAgreeIsCastOnce) {
  const BuiltStorage b(
      kBf16 + kStorageData + IpStorage("a", "x") + IpStorage("b", "x") +
          "layer { name: 'sum' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 'sum' }" +
          LossStorage("sum") +
          "layer { name: 'acc' type: 'Accuracy' bottom: 'sum' bottom: 'label' top: 'acc' }",
      caffe::TEST);
  EXPECT_THAT(b.Casts(), ElementsAre("x as bf16", "sum as f32"));
}

TEST(NetStorageTest, AValueWhoseReadersDifferIsCastForThoseThatNeedIt) {
  const BuiltStorage b(
      kBf16 + kStorageData + IpStorage("a", "x") + IpStorage("b", "a") + LossStorage("a") +
      "layer { name: 'loss2' type: 'SoftmaxWithLoss' bottom: 'b' bottom: 'label' }");
  EXPECT_THAT(b.Casts(), ElementsAre("x as bf16", "a_a_0_split_1 as f32", "b as f32"));
}

TEST(NetStorageTest, LabelsStayF32) {
  const BuiltStorage b(
      kBf16 + kMemoryData + Simple("Power", "label", "doubled", "power_param { scale: 2 }") +
          Simple("Reshape", "label", "shaped", "reshape_param { shape { dim: 4 dim: 1 } }") +
          IpStorage("ip", "x") + LossStorage("ip", "shaped") +
          "layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip' bottom: 'doubled' "
          "top: 'accuracy' }",
      caffe::TEST);
  EXPECT_THAT(b.Casts(), ElementsAre("x as bf16", "ip as f32"));
  EXPECT_EQ(b.net->Value("doubled").dtype, DType::kF32);
}

// The source does not declare labels, so that the types of its readers decide.
TEST(NetStorageTest, MovedNumbersHaveTheTypeThatTheirReadersTake) {
  const std::string data =
      "layer { name: 'data' type: 'Input' top: 'x' input_param { shape { dim: 4 dim: 6 } } }"
      "layer { name: 'cut' type: 'Slice' bottom: 'x' top: 'a' top: 'b' }";
  const BuiltStorage features(kBf16 + data + IpStorage("ip_a", "a") + IpStorage("ip_b", "b"));
  EXPECT_THAT(features.Casts(), ElementsAre("x as bf16"));
  const BuiltStorage mixed(kBf16 + data + IpStorage("ip_a", "a") +
                           "layer { name: 'mean' type: 'Reduction' bottom: 'b' top: 'mean' }");
  EXPECT_THAT(mixed.Casts(), ElementsAre("a as bf16"));
}

TEST(NetStorageTest, PlacesOfAMaxPoolAreExact) {
  const BuiltStorage b(kBf16 +
                       R"(layer { name: "x" type: "DummyData" top: "x"
                     dummy_data_param { shape { dim: 1 dim: 1 dim: 20 dim: 20 } } }
                   layer { name: "pool" type: "Pooling" bottom: "x" top: "y" top: "place"
                     pooling_param { kernel_size: 1 } })");
  b.net->Forward();
  EXPECT_EQ(b.net->Value("y").dtype, DType::kBF16);
  EXPECT_EQ(b.Read(b.net->Value("place"))[399], 399);
}

TEST(NetStorageTest, AWeightedOutputIsF32) {
  const BuiltStorage b(kBf16 + kStorageData + IpStorage("ip", "x") +
                       Simple("Eltwise", "ip' bottom: 'ip", "sum", "loss_weight: 0.3"));
  EXPECT_EQ(b.net->Value("sum").dtype, DType::kF32);
  EXPECT_THAT(b.Casts(), Contains("ip as f32"));
  b.net->Forward();
  b.net->Backward();
  EXPECT_THAT(b.Read(b.net->Gradient("sum")), testing::Each(0.3f));
}

// A GPU stores f16; the CPU stores bf16 instead.
TEST(NetStorageTest, Float16IsF16WhereTheDeviceStoresIt) {
  const BuiltStorage b("default_forward_type: FLOAT16\n" + kStorageData + IpStorage("ip1", "x") +
                       IpStorage("ip2", "ip1", "forward_type: BFLOAT16") + LossStorage("ip2"));
  const DType half = TestsOnGpu() ? DType::kF16 : DType::kBF16;
  EXPECT_EQ(b.net->Value("ip1").dtype, half);
  EXPECT_EQ(b.net->Gradient("ip1").dtype, half);
  EXPECT_EQ(b.net->Value("ip2").dtype, DType::kBF16);
  if (TestsOnGpu()) {
    EXPECT_THAT(b.Casts(), ElementsAre("x as f16", "ip1 as bf16", "ip2 as f32"));
  } else {
    EXPECT_THAT(b.Casts(), ElementsAre("x as bf16", "ip2 as f32"));
  }
  EXPECT_EQ(HasF16Gradients(*b.net), TestsOnGpu());
}

TEST(NetStorageTest, OnlyGradientsInF16NeedALossScale) {
  const std::string half = "default_forward_type: FLOAT16\n";
  const std::string loss = LossStorage("ip");
  EXPECT_FALSE(
      HasF16Gradients(*BuiltStorage(kBf16 + kStorageData + IpStorage("ip", "x") + loss).net));
  EXPECT_FALSE(HasF16Gradients(*BuiltStorage(kStorageData + IpStorage("ip", "x") + loss).net));
  EXPECT_FALSE(HasF16Gradients(
      *BuiltStorage(half + kStorageData + IpStorage("ip", "x") + loss, caffe::TEST).net));
}

// bf16 holds 8 bits: 1 + 2^-7 is the next number after 1.
TEST(NetStorageTest, HandValuesOfCastsRoundToNearestEven) {
  BuiltStorage b(
      kBf16 +
      "layer { name: 'x' type: 'TestSource' top: 'x' parameter_param { shape { dim: 4 } } }"
      "layer { name: 'y' type: 'Power' bottom: 'x' top: 'y' power_param { scale: 2 } }"
      "layer { name: 'end' type: 'TestLoss' bottom: 'y' top: 'end' loss_weight: 1 }");
  EXPECT_THAT(b.Steps(), ElementsAre("x", "x as bf16", "y", "y as f32", "end"));
  const float ulp = 0x1p-7f;
  const std::vector<float> x = {1 + ulp / 2, 1 + ulp * 3 / 2, 1 + ulp * 0.75f, -1 - ulp / 4};
  WriteFloats(*b.device, x, b.params.Find("x:0")->weight);
  auto* end = dynamic_cast<TestLoss*>(b.net->graph().nodes[NodeId(4)].layer.get());
  ASSERT_NE(end, nullptr);
  end->inputs()[0].gradients = {1 + ulp / 2, 3 * (1 + ulp), 1 + ulp * 0.75f, 0};
  b.net->Forward();
  EXPECT_THAT(end->inputs()[0].values, ElementsAre(2, 2 + 4 * ulp, 2 + 2 * ulp, -2));
  b.net->Backward();
  EXPECT_THAT(GradOf(*b.device, *b.params.Find("x:0")),
              ElementsAre(2, 6 + 8 * ulp, 2 + 2 * ulp, 0));
}

TEST(NetStorageTest, WeightsGoOutAsTheyAreAndCastsDoNot) {
  BuiltStorage b(kBf16 + kStorageData + IpStorage("ip", "x") + LossStorage("ip"));
  WriteFloats(*b.device, std::vector<float>{1 + 0x1p-20f}, b.params.Find("ip:0")->weight);
  const caffe::NetParameter saved = WeightsOf(*b.net);
  std::vector<std::string> names;
  for (const caffe::LayerParameter& layer : saved.layer()) names.push_back(layer.name());
  EXPECT_THAT(names, ElementsAre("data", "ip", "loss"));
  EXPECT_EQ(saved.layer(1).blobs(0).data(0), 1 + 0x1p-20f);
}

// f16 holds 11 bits, and nothing beyond 65504.
TEST(NetStorageTest, HandValuesOfCastsToF16RoundAndOverflow) {
  if (!TestsOnGpu()) GTEST_SKIP() << "the CPU stores no f16";
  BuiltStorage b(
      "default_forward_type: FLOAT16\n"
      "layer { name: 'x' type: 'TestSource' top: 'x' parameter_param { shape { dim: 5 } } }"
      "layer { name: 'y' type: 'Power' bottom: 'x' top: 'y' power_param { scale: 2 } }"
      "layer { name: 'end' type: 'TestLoss' bottom: 'y' top: 'end' loss_weight: 1 }");
  EXPECT_THAT(b.Steps(), ElementsAre("x", "x as f16", "y", "y as f32", "end"));
  const float ulp = 0x1p-10f, inf = std::numeric_limits<float>::infinity();
  WriteFloats(*b.device, std::vector<float>{1 + ulp / 2, 1 + ulp * 3 / 2, 30000, 0x1p-25f, -40000},
              b.params.Find("x:0")->weight);
  auto* end = dynamic_cast<TestLoss*>(b.net->graph().nodes[NodeId(4)].layer.get());
  ASSERT_NE(end, nullptr);
  end->inputs()[0].gradients = {1 + ulp / 2, 3 * (1 + ulp), 65519, 65520, 0x1p-26f};
  b.net->Forward();
  EXPECT_THAT(end->inputs()[0].values, ElementsAre(2, 2 + 4 * ulp, 60000, 0, -inf));
  b.net->Backward();
  EXPECT_THAT(GradOf(*b.device, *b.params.Find("x:0")), ElementsAre(2, 6 + 8 * ulp, inf, inf, 0));
}

// The layers after a Filter, including casts, get new shapes for fewer rows.
TEST(NetStorageTest, CastsFollowAShapeThatChanges) {
  BuiltStorage b(kBf16 + R"(
      layer { name: "x" type: "TestSource" top: "x" parameter_param { shape { dim: 3 dim: 2 } } }
      layer { name: "s" type: "TestSource" top: "s" parameter_param { shape { dim: 3 dim: 1 } } }
      layer { name: "f" type: "Filter" bottom: "x" bottom: "s" top: "f" }
      layer { name: "y" type: "Power" bottom: "f" top: "y" power_param { scale: 2 } }
      layer { name: "end" type: "TestLoss" bottom: "y" top: "end" loss_weight: 1 })");
  const auto set = [&](const char* name, const std::vector<float>& values) {
    WriteFloats(*b.device, values, b.params.Find(name)->weight);
  };
  set("x:0", {1, 2, 3, 4, 5, 6});
  set("s:0", {1, 0, 1});
  auto* end = dynamic_cast<TestLoss*>(std::prev(b.net->graph().nodes.end())->layer.get());
  ASSERT_NE(end, nullptr);
  b.net->Forward();
  EXPECT_THAT(end->inputs()[0].values, ElementsAre(2, 4, 10, 12));
}

}  // namespace
}  // namespace trainer
