// Nets fit into less memory if outputs are computed again: more work gives the same bits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "support/error_of.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/net/compile.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kBudgetData[] = R"(
layer { name: "data" type: "DummyData" top: "data" top: "label"
        dummy_data_param { shape { dim: 6 dim: 3 dim: 19 dim: 17 } shape { dim: 6 }
          data_filler { type: "gaussian" } data_filler { type: "constant" value: 2 } } }
)";
constexpr char kEnd[] = R"(
layer { name: "ip" type: "InnerProduct" bottom: "last" top: "ip"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

std::string Conv(const std::string& name, const std::string& in, int outputs, int kernel) {
  return Join("layer { name: '", name, "' type: 'Convolution' bottom: '", in, "' top: '", name,
              "' convolution_param { num_output: ", outputs, " kernel_size: ", kernel,
              " pad: ", kernel / 2, " weight_filler { type: 'xavier' } } }\n");
}
std::string BudgetRelu(const std::string& blob) {
  return Join("layer { name: 'relu_", blob, "' type: 'ReLU' bottom: '", blob, "' top: '", blob,
              "' }\n");
}
std::string Plain(const std::string& name, const std::string& type, const std::string& in,
                  const std::string& more = "") {
  return Join("layer { name: '", name, "' type: '", type, "' bottom: '", in, "' top: '", name, "' ",
              more, " }\n");
}

// Returns a net of the layers of CaffeNet and GoogLeNet: LRN, pooling, joined branches, dropout.
std::string InceptionNet() {
  return kBudgetData + Conv("conv1", "data", 8, 3) + BudgetRelu("conv1") +
         Plain("pool1", "Pooling", "conv1", "pooling_param { kernel_size: 3 stride: 2 }") +
         Plain("norm1", "LRN", "pool1") + Conv("a", "norm1", 6, 1) + BudgetRelu("a") +
         Conv("b1", "norm1", 5, 1) + BudgetRelu("b1") + Conv("b2", "b1", 7, 3) + BudgetRelu("b2") +
         "layer { name: 'join' type: 'Concat' bottom: 'a' bottom: 'b2' top: 'join' }\n" +
         Conv("c", "join", 6, 3) + BudgetRelu("c") + Conv("d", "join", 6, 1) + BudgetRelu("d") +
         "layer { name: 'join2' type: 'Concat' bottom: 'c' bottom: 'd' top: 'join2' }\n" +
         Plain("drop", "Dropout", "join2") +
         Plain("last", "Pooling", "drop", "pooling_param { pool: AVE kernel_size: 3 stride: 2 }") +
         kEnd;
}

// Returns a net of the layers of ResNet: batch norms, and sums around them.
std::string ResidualNet() {
  std::string text = kBudgetData + Conv("conv1", "data", 8, 3);
  std::string from = "conv1";
  for (int i = 1; i <= 3; ++i) {
    const std::string n = std::to_string(i);
    text += Conv("x" + n, from, 8, 3) + Plain("bn" + n, "BatchNorm", "x" + n) +
            Plain("scale" + n, "Scale", "bn" + n, "scale_param { bias_term: true }") +
            BudgetRelu("scale" + n) + Conv("y" + n, "scale" + n, 8, 1) +
            Plain("z" + n, "BatchNorm", "y" + n) + "layer { name: 'sum" + n +
            "' type: 'Eltwise' bottom: '" + from + "' bottom: 'z" + n + "' top: 'sum" + n +
            "' }\n" + Plain("out" + n, "ReLU", "sum" + n);
    from = "out" + n;
  }
  return text + Plain("last", "Pooling", from, "pooling_param { global_pooling: true pool: AVE }") +
         kEnd;
}

NetOptions OptionsFor(size_t most, BufferReuse mode = BufferReuse::kShared) {
  NetOptions options = QuietOptions(caffe::TRAIN);
  options.activation_budget_bytes = most;
  options.memory = mode;
  return options;
}

// Returns the losses, gradients and weights of some passes.
std::vector<float> Numbers(const std::string& text, const NetOptions& options) {
  const NetSpec spec = NetFromText(text);
  const auto device = MakeTestDevice(2);
  ParamStore params(*device);
  Net net(spec, options, *device, params);
  std::vector<float> seen;
  for (int pass = 0; pass < 3; ++pass) {
    seen.push_back(net.Forward());
    net.Backward();
    for (const Param* param : net.params()) {
      std::vector<float> weight = WeightOf(*device, *param);
      if (param->grad != nullptr) {
        const std::vector<float> grad = GradOf(*device, *param);
        seen.insert(seen.end(), grad.begin(), grad.end());
        for (size_t i = 0; i < grad.size(); ++i) weight[i] -= 0.01f * grad[i];
        WriteFloats(*device, weight, param->weight);
      }
      seen.insert(seen.end(), weight.begin(), weight.end());
    }
    params.ClearGradients();
  }
  return seen;
}

MemoryPlan PlanWith(const std::string& text, size_t most) {
  const NetSpec spec = NetFromText(text);
  const auto device = MakeTestDevice(2);
  ParamStore params(*device);
  return Compile(spec, OptionsFor(most), *device, params)->memory;
}

int CountAgain(const MemoryPlan& plan) {
  int count = 0;
  for (const Buffer& block : plan.buffers) count += block.name.ends_with(" again");
  return count;
}

void ExpectNoOverlap(const MemoryPlan& plan) {
  for (const Buffer& a : plan.buffers) {
    for (const Buffer& b : plan.buffers) {
      if (&a == &b || a.last_use < b.first_use || b.last_use < a.first_use) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset)
          << a.name << " and " << b.name;
    }
  }
}

// Returns the least memory that the plan accepts, to a hundredth.
size_t LeastBytes(const std::string& text) {
  const size_t whole = PlanWith(text, 0).arena_bytes;
  size_t least = whole;
  for (size_t most = whole; most > whole / 100; most -= whole / 100) {
    try {
      least = PlanWith(text, most).arena_bytes;
    } catch (const Error&) {
      break;
    }
  }
  return least;
}

class ActivationBudgetTest : public testing::TestWithParam<std::string> {
 protected:
  static std::string NetText() {
    return GetParam() == "inception" ? InceptionNet() : ResidualNet();
  }
};
INSTANTIATE_TEST_SUITE_P(Nets, ActivationBudgetTest, testing::Values("inception", "residual"),
                         [](const auto& one) { return one.param; });

TEST_P(ActivationBudgetTest, LessMemoryGivesTheSameBits) {
  const std::string text = NetText();
  const size_t whole = PlanWith(text, 0).arena_bytes, least = LeastBytes(text);
  EXPECT_LT(least, whole * 97 / 100);  // the amount depends on the scratch of the CPU's kernels
  const std::vector<float> numbers = Numbers(text, OptionsFor(0));
  for (const size_t most : {whole - 1, (whole + least) / 2, least}) {
    const MemoryPlan plan = PlanWith(text, most);
    EXPECT_LE(plan.arena_bytes, most);
    EXPECT_GT(CountAgain(plan), 0);
    ExpectNoOverlap(plan);
    for (const BufferReuse mode : {BufferReuse::kShared, BufferReuse::kPoisoned}) {
      const std::vector<float> again = Numbers(text, OptionsFor(most, mode));
      ASSERT_EQ(again.size(), numbers.size());
      EXPECT_EQ(std::memcmp(again.data(), numbers.data(), numbers.size() * sizeof(float)), 0)
          << most << " of " << whole;
    }
  }
}

TEST_P(ActivationBudgetTest, WhatFitsIsNotComputedAgain) {
  const std::string text = NetText();
  const size_t whole = PlanWith(text, 0).arena_bytes;
  EXPECT_EQ(CountAgain(PlanWith(text, whole)), 0);
}

TEST_P(ActivationBudgetTest, TooLittleIsRefusedWithTheNeedAndTheLargest) {
  const std::string text = NetText();
  const auto [code, error] = ErrorOf([&] { PlanWith(text, 64); });
  EXPECT_EQ(code, ErrorCode::kResource);
  EXPECT_THAT(error, AllOf(HasSubstr("the values of the net need "),
                           HasSubstr("outputs are now) and 1 MiB are available for them; the "
                                     "largest: "),
                           HasSubstr("give a larger --memory or a smaller batch")));
}

TEST(ActivationBudgetOneTest, ALayerMayRefuseToBeComputedAgain) {
  std::string text = ResidualNet();
  const size_t most = LeastBytes(text);
  for (size_t at = 0; (at = text.find("layer { name", at)) != std::string::npos; ++at) {
    text.insert(at + 8, "recompute: false ");
  }
  EXPECT_EQ(ErrorOf([&] { PlanWith(text, most); }).first, ErrorCode::kResource);
}

}  // namespace
}  // namespace trainer
