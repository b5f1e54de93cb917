// Tests updates in ranges, over replicas and with a scaled loss, and that they read no device data.

#include "param_updater.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/test_device.h"
#include "support/wrapped_device.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;

// An asynchronous device that counts the reads.
class FarDevice final : public WrappedDevice {
 public:
  bool IsAsync() const override { return true; }
  void CopyToHost(void* host, const void* from, size_t bytes) const override {
    ++reads;
    WrappedDevice::CopyToHost(host, from, bytes);
  }
  mutable int reads = 0;
};

constexpr int kParams = 5, kCount = 40;

// Returns five consecutive parameters, the third without a gradient, after three updates.
std::vector<float> Updated(const Device& device, const std::string& fields, int ranges,
                           int ranks = 1, float gradient_scale = 1) {
  SolverSpec spec;
  spec.file = "solver.prototxt";
  spec.text = ParseTextString(spec.file, "base_lr: 1 momentum: 0.5 " + fields, &spec.proto);
  std::vector<float> start(kParams * kCount), now(start.size());
  for (size_t i = 0; i < start.size(); ++i) start[i] = std::sin(static_cast<float>(i));
  const OnDevice<float> weights(device, start), gradients(device, now);
  std::vector<Param> params(kParams);
  std::vector<Param*> list;
  for (size_t p = 0; p < kParams; ++p) {
    params[p].shape = Shape{kCount};
    params[p].weight = weights.data() + p * kCount;
    // Gradients are stored in the reverse order of the parameters.
    if (p != 2) params[p].grad = gradients.data() + (kParams - 1 - p) * kCount;
    params[p].lr_mult = static_cast<float>(p + 1);
    list.push_back(&params[p]);
  }
  ParamUpdater update(spec, MakeUpdateRule(spec), device, list, gradients.span(), ranks);
  for (int step = 0; step < 3; ++step) {
    for (const Param& param : params) {
      if (param.grad == nullptr) continue;
      const auto first = static_cast<float>(step) + param.lr_mult;
      float* const grad = now.data() + (param.grad - gradients.data());
      for (int i = 0; i < kCount; ++i) {
        grad[i] = gradient_scale * std::cos(first * static_cast<float>(i + 1));
      }
    }
    gradients.Write(now);
    const Hyperparams hyper{step, 0.1f, 0.5f, 0.01f};
    EXPECT_EQ(update.AppliesInRanges(), fields.find("clip_gradients") == fields.npos);
    update.Begin(hyper);
    const std::span<const float> all = gradients.span();
    const auto size = all.size() / static_cast<size_t>(ranges);
    for (size_t r = 0; r < static_cast<size_t>(ranges); ++r)
      update.Apply(all.subspan(r * size, size));
    EXPECT_THAT(gradients.Read(), testing::Each(0));
  }
  return weights.Read();
}

const char* const kWeightUpdateRules[] = {"type: 'SGD' ", "type: 'Adam' ",
                                          "type: 'LARS' trust_coefficient: 0.1 ",
                                          "type: 'SGD' larc: true larc_eta: 0.1 "};

TEST(WeightUpdateTest, InRangesIsTheUpdateAsAWhole) {
  const auto device = MakeTestDevice(1);
  for (const std::string rule : kWeightUpdateRules) {
    for (const char* clip : {"", "clip_gradients: 1.5 ", "clip_value: 0.25 "}) {
      EXPECT_THAT(Updated(*device, rule + clip, 5),
                  ElementsAreArray(Updated(*device, rule + clip, 1)))
          << rule << clip;
    }
  }
}

TEST(WeightUpdateTest, TakesTheMeanOverReplicas) {
  const auto device = MakeTestDevice(1);
  for (const std::string rule : kWeightUpdateRules) {
    for (const char* clip : {"", "clip_gradients: 1.5 ", "clip_value: 0.25 "}) {
      EXPECT_THAT(Updated(*device, rule + clip, 5, 4, 4),
                  ElementsAreArray(Updated(*device, rule + clip, 5)))
          << rule << clip;
    }
  }
}

// Updates two parameters that have averages. The second is longer than a chunk and has a copy.
struct Followed {
  static constexpr int64_t kFirst = 24, kSecond = 3 * 40 * 50;
  static constexpr int kSteps = 3;
  static constexpr float kDecay = 0.2f;  // weight of the old average after the first update

  Followed(const Device& device, const std::string& fields, const PackedLayout& form)
      : weights(device, Start()),
        gradients(device, Start().size()),
        averages(device, Start()),
        copy(device, static_cast<size_t>(kSecond) * SizeOf(form.dtype)) {
    SolverSpec spec;
    spec.file = "solver.prototxt";
    spec.text = ParseTextString(spec.file, "base_lr: 1 momentum: 0.5 " + fields, &spec.proto);
    Param params[2];
    for (int p = 0; p < 2; ++p) {
      params[p].shape = Shape{p == 0 ? kFirst : kSecond};
      params[p].weight = weights.data() + p * kFirst;
      params[p].grad = gradients.data() + p * kFirst;
    }
    ParamUpdater update(spec, MakeUpdateRule(spec), device, {&params[0], &params[1]},
                        gradients.span());
    update.FuseEma({averages.data(), averages.data() + kFirst}, kDecay);
    update.WritePackedWeights({{}, {copy.data(), form}});
    for (int step = 0; step < kSteps; ++step) {
      gradients.Write(Start());
      update.Apply({step, 0.1f, 0.5f, 0.01f});
      history.push_back(weights.Read());
    }
  }
  static std::vector<float> Start() {
    std::vector<float> start(kFirst + kSecond);
    for (size_t i = 0; i < start.size(); ++i) start[i] = std::sin(static_cast<float>(i));
    return start;
  }

  OnDevice<float> weights, gradients, averages;
  OnDevice<std::byte> copy;
  std::vector<std::vector<float>> history;  // the weights after each step
};

TEST(WeightUpdateTest, AveragesFollowInTheSamePass) {
  const auto device = MakeTestDevice(1);
  for (const char* rule : kWeightUpdateRules) {
    const Followed run(*device, rule, {DType::kF32, 3, 40, 50});
    std::vector<float> expected = Followed::Start();
    for (int step = 0; step < Followed::kSteps; ++step) {
      const float ema_keep = step == 0 ? 2.0f / 11 : Followed::kDecay;
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] =
            ema_keep * expected[i] + (1 - ema_keep) * run.history[static_cast<size_t>(step)][i];
      }
    }
    EXPECT_THAT(run.averages.Read(), testing::Pointwise(testing::FloatNear(1e-6f), expected))
        << rule;
  }
}

TEST(WeightUpdateTest, CopiesAreWrittenInTheSamePassInTheirOrderAndType) {
  const auto device = MakeTestDevice(1);
  for (const DType type : StoredTypes()) {
    // Elements change places in the first layout only.
    for (const PackedLayout& form :
         {PackedLayout{type, 3, 40, 50}, {type, 3, 2000, 1}, {type, 1, 1, 6000}}) {
      for (const char* rule : kWeightUpdateRules) {
        const Followed run(*device, rule, form);
        std::vector<std::byte> expected(run.copy.size());
        for (int64_t i = 0; i < Followed::kSecond; ++i) {
          const int64_t row = i / (form.a * form.b), a = i / form.b % form.a, b = i % form.b;
          const auto to = static_cast<size_t>((row * form.b + b) * form.a + a);
          DispatchDtype(type, [&](auto tag) {
            typename decltype(tag)::Type stored;
            Store(stored, run.history.back()[static_cast<size_t>(Followed::kFirst + i)]);
            std::memcpy(expected.data() + to * sizeof(stored), &stored, sizeof(stored));
          });
        }
        EXPECT_TRUE(run.copy.Read() == expected) << rule << NameOf(type) << form.a;
      }
    }
  }
}

// A read from the device would wait for all queued work.
TEST(WeightUpdateTest, ReadsNothingFromADeviceThatRunsLaterAndComputesTheSame) {
  const auto near = MakeTestDevice(1);
  for (const std::string rule : kWeightUpdateRules) {
    for (const std::string clip : {"", "clip_gradients: 1.5 ", "clip_value: 0.25 "}) {
      const FarDevice far;
      EXPECT_THAT(Updated(far, rule + clip, 1), ElementsAreArray(Updated(*near, rule + clip, 1)))
          << rule << clip;
      constexpr int kOwn = 4;  // in this test: gradients of each update, then weights
      EXPECT_EQ(far.reads, kOwn) << rule << clip;
    }
  }
}

}  // namespace
}  // namespace trainer
