// Tests layers that need sums over the batches of all replicas.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "support/layer_runner.h"
#include "support/test_device.h"
#include "support/thread_group.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using Script = std::vector<std::vector<float>>;

// One of two replicas. The script gives what the other one adds to each sum.
class Scripted {
 public:
  explicit Scripted(Script of_other) : of_other_(std::move(of_other)) {}
  void Join(LayerRunner& runner) {
    runner.layer().UseAllReduce({2, [this](std::span<float> values) { Sum(values); }});
  }
  size_t sums = 0;

 private:
  void Sum(std::span<float> values) {
    ASSERT_LT(sums, of_other_.size());
    ASSERT_EQ(values.size(), of_other_[sums].size());
    for (size_t i = 0; i < values.size(); ++i) values[i] += of_other_[sums][i];
    ++sums;
  }
  Script of_other_;
};

// Splits a batch over `count` replicas, each a LayerRunner in its own thread, and also runs the
// whole batch on one.
class Parts {
 public:
  Parts(const std::string& layer, const std::vector<Shape>& shapes, int count)
      : whole(layer, shapes), meeting_(count) {
    std::vector<Shape> of_part = shapes;
    for (Shape& shape : of_part) {
      std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
      dims[0] /= count;
      shape = Shape(dims);
    }
    for (int rank = 0; rank < count; ++rank) {
      groups_.push_back(std::make_unique<ThreadGroup>(meeting_, rank, true));
      parts.push_back(std::make_unique<LayerRunner>(layer, of_part));
      parts.back()->layer().UseAllReduce(
          {count,
           [group = groups_.back().get()](std::span<float> values) { group->AllReduce(values); }});
    }
  }

  size_t count() const { return parts.size(); }
  std::vector<float> Part(const std::vector<float>& all, size_t rank) const {
    const auto size = static_cast<std::ptrdiff_t>(all.size() / count());
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank) * size;
    return {begin, begin + size};
  }
  void SetInput(int i, const std::vector<float>& values) {
    whole.SetInput(i, values);
    for (size_t rank = 0; rank < count(); ++rank) parts[rank]->SetInput(i, Part(values, rank));
  }
  template <class F>
  void All(const F& body) {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < count(); ++rank) {
      threads.emplace_back([&, rank] { body(*parts[rank], rank); });
    }
  }
  // Returns the values of all replicas, one after the other.
  template <class F>
  std::vector<float> Joined(const F& of) const {
    std::vector<float> all;
    for (const auto& part : parts) {
      const std::vector<float> own = of(*part);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }

  LayerRunner whole;
  std::vector<std::unique_ptr<LayerRunner>> parts;

 private:
  Meeting meeting_;
  std::vector<std::unique_ptr<ThreadGroup>> groups_;
};

class ReplicaSumsTest : public testing::Test {
 protected:
  void SetUp() override { TRAINER_CPU_ONLY("the threads compute on one device each at a time"); }
};

// Compares the results on `count` replicas, and the stored averages, with the whole batch.
void ExpectBatchNormOfAll(const std::string& fields, const Shape& shape, int count, float bound,
                          float far = 0) {
  SCOPED_TRACE(Join(fields, " ", shape.ToString(), " on ", count));
  const std::string layer =
      Join("type: 'BatchNorm' batch_norm_param { synchronized: true ", fields, " }");
  Parts all(layer, {shape}, count);
  std::vector<float> x = LayerRunner::SomeValues(shape.Count(), 1);
  for (size_t i = 0; i < x.size(); ++i) x[i] += far + static_cast<float>(i) / 1000.0f;
  const std::vector<float> dy = LayerRunner::SomeValues(shape.Count(), 2);
  all.SetInput(0, x);
  for (int pass = 0; pass < 2; ++pass) {
    all.whole.Forward();
    all.whole.Backward({dy});
    all.All([&](LayerRunner& part, size_t rank) {
      part.Forward();
      part.Backward({all.Part(dy, rank)});
    });
  }
  ExpectNear(all.Joined([](LayerRunner& part) { return part.Output(); }), all.whole.Output(), bound,
             "output");
  ExpectNear(all.Joined([](LayerRunner& part) { return part.InputGradient(); }),
             all.whole.InputGradient(), bound, "gradient");
  for (int i = 0; i < 3; ++i) {
    ExpectNear(all.parts[0]->GetParam(i), all.whole.GetParam(i), bound, Join("average ", i));
    for (const auto& part : all.parts) {
      EXPECT_EQ(part->GetParam(i), all.parts[0]->GetParam(i)) << "bit for bit";
    }
  }
  for (int i = 3; i < all.whole.NumParams(); ++i) {  // the layer does not sum these gradients
    std::vector<float> sum(static_cast<size_t>(shape[1]));
    for (const auto& part : all.parts) {
      const std::vector<float> own = part->ParamGradient(i);
      for (size_t c = 0; c < sum.size(); ++c) sum[c] += own[c];
    }
    ExpectNear(sum, all.whole.ParamGradient(i), bound, "a learned parameter's gradient");
  }
}

TEST_F(ReplicaSumsTest, ASynchronizedBatchNormIsThatOfTheWholeBatch) {
  for (const int count : {2, 3}) {
    ExpectBatchNormOfAll("eps: 0.01", {6, 5, 4, 3}, count, 1e-5f);
    ExpectBatchNormOfAll("eps: 0.01", {12, 17}, count, 1e-5f);
    ExpectBatchNormOfAll("scale_bias: true", {6, 20, 3}, count, 2e-5f);
  }
}

TEST_F(ReplicaSumsTest, ASynchronizedBatchNormKeepsItsDigitsWhereMeansAreFarFromZero) {
  ExpectBatchNormOfAll("eps: 0.01", {8, 3, 5, 4}, 4, 2e-3f, 3000);
}

TEST_F(ReplicaSumsTest, ASynchronizedBatchNormInBf16IsThatOfTheWholeBatch) {
  const Shape shape{4, 3, 6, 5};
  Parts all("type: 'BatchNorm' forward_type: BFLOAT16 batch_norm_param { synchronized: true }",
            {shape}, 2);
  all.SetInput(0, LayerRunner::SomeValues(shape.Count(), 1));
  all.whole.Forward();
  all.All([](LayerRunner& part, size_t) { part.Forward(); });
  ExpectNear(all.Joined([](LayerRunner& part) { return part.Output(); }), all.whole.Output(),
             0.02f);
}

// The other replica's batch is {5, 9}: the joint mean is 5 and the joint variance 6.5.
TEST(SynchronizedBatchNormTest, HandValues) {
  Scripted other(Script{{7}, {2, 4 + 4}, {0.5f, 1.5f}});
  LayerRunner layer("type: 'BatchNorm' batch_norm_param { synchronized: true eps: 0 }", {{2, 1}});
  other.Join(layer);
  const float root = std::sqrt(6.5f);
  ExpectNear(layer.Forward({2, 4}), {-3 / root, -1 / root}, 1e-6f);
  ExpectNear(layer.GetParam(0), {5}, 1e-6f);
  ExpectNear(layer.GetParam(1), {6.5f * 4 / 3}, 1e-6f);
  EXPECT_EQ(other.sums, 2u);
  layer.Backward({{1, 2}});
  const float mean = (1.5f + 0.5f) / 2, with_z = ((-3 - 2) / root / 2 + 1.5f) / 2;
  ExpectNear(layer.InputGradient(),
             {(1 - mean + 3 / root * with_z) / root, (2 - mean + 1 / root * with_z) / root}, 1e-6f);
  EXPECT_EQ(other.sums, 3u);
}

TEST(SynchronizedBatchNormTest, StoredMomentsNeedNobody) {
  Scripted nobody(Script{});
  LayerRunner layer(
      "type: 'BatchNorm' batch_norm_param { synchronized: true use_global_stats: true }", {{2, 1}});
  nobody.Join(layer);
  layer.Forward({1, 2});
  layer.Backward({{1, 1}});
  EXPECT_EQ(nobody.sums, 0u);
}

// Expects the mean over replicas of the losses and gradients to equal the whole batch's.
void ExpectLossOfAll(const std::string& layer, const std::vector<Shape>& shapes,
                     const std::vector<float>& labels) {
  for (const int count : {2, 4}) {
    SCOPED_TRACE(Join(layer, " on ", count));
    Parts all(layer, shapes, count);
    all.SetInput(0, LayerRunner::SomeValues(shapes[0].Count(), 1));
    all.SetInput(1, labels);
    all.whole.Forward();
    all.whole.Backward({{1}});
    all.All([&](LayerRunner& part, size_t) {
      part.Forward();
      part.Backward({{1}});
    });
    float loss = 0;
    for (const float own : all.Joined([](LayerRunner& part) { return part.Output(); })) loss += own;
    const auto replicas = static_cast<float>(count);
    ExpectNear({loss / replicas}, all.whole.Output(), 1e-6f, "loss");
    std::vector<float> gradient =
        all.Joined([](LayerRunner& part) { return part.InputGradient(); });
    for (float& value : gradient) value /= replicas;
    ExpectNear(gradient, all.whole.InputGradient(), 1e-6f, "gradient");
  }
}

TEST_F(ReplicaSumsTest, LossesAreThoseOfTheWholeBatchWithUnlikeNumbersOfIgnoredLabels) {
  const std::vector<float> labels = {2, 2, 2, 1, 0, 2, 1, 1};
  for (const char* mode : {"VALID", "FULL", "BATCH_SIZE", "NONE"}) {
    const std::string fields = Join("loss_param { normalization: ", mode, " ignore_label: 2 }");
    ExpectLossOfAll("type: 'SoftmaxWithLoss' " + fields, {{8, 3}, {8}}, labels);
    ExpectLossOfAll("type: 'SigmoidCrossEntropyLoss' " + fields, {{8, 1}, {8, 1}}, labels);
  }
  ExpectLossOfAll("type: 'SoftmaxWithLoss' loss_param { ignore_label: 7 }", {{8, 3}, {8}},
                  std::vector<float>(8, 7));
}

TEST_F(ReplicaSumsTest, ClassWeightsAreSummedOverAllBatches) {
  ExpectLossOfAll(
      "type: 'SoftmaxWithLoss' loss_param { class_weight: 0.5 class_weight: 2 class_weight: 0 }",
      {{8, 3}, {8}}, {2, 2, 2, 1, 0, 2, 1, 1});
}

TEST(LossOverReplicasTest, OnlyCountsThatMayDifferAreExchanged) {
  for (const auto& [fields, sums] : {std::pair<std::string, size_t>("", 0),
                                     {"ignore_label: 1", 1},
                                     {"ignore_label: 1 normalization: FULL", 0},
                                     {"ignore_label: 1 normalization: NONE", 0},
                                     {"class_weight: 1 class_weight: 2", 1}}) {
    Scripted other(Script{{1, 1}});
    LayerRunner loss("type: 'SoftmaxWithLoss' loss_param { " + fields + " }", {{2, 2}, {2}});
    other.Join(loss);
    loss.SetInput(1, {0, 0});
    loss.Forward();
    EXPECT_EQ(other.sums, sums) << fields;
  }
}

// This replica has 2 labels; the other one has 2 too, but ignores one. The mean count is 1.5.
TEST(LossOverReplicasTest, HandValues) {
  Scripted other(Script{{1, 0}});
  LayerRunner loss("type: 'SoftmaxWithLoss' loss_param { ignore_label: 1 }", {{2, 2}, {2}});
  other.Join(loss);
  loss.SetInput(1, {0, 0});
  ExpectNear(loss.Forward({0, 0, 0, 0}), {2 * std::log(2.0f) / 1.5f}, 1e-6f);
  loss.Backward({{0}});  // in addition to the loss weight of 1
  ExpectNear(loss.InputGradient(), {-0.5f / 1.5f, 0.5f / 1.5f, -0.5f / 1.5f, 0.5f / 1.5f}, 1e-6f);
}

}  // namespace
}  // namespace trainer
