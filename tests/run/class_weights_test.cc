// class_weight_power becomes class_weight, counted from the training set.

#include "class_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "storage/test_data.h"
#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/thread_group.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::IsEmpty;

class ClassWeightsTest : public testing::Test {
 protected:
  ClassWeightsTest() {
    Records records;  // 16 of class 0, 3 of class 1, 1 of class 2
    for (int i = 0; i < 20; ++i) {
      const int label = i == 7 ? 2 : i % 7 == 1 ? 1 : 0;
      records.emplace_back(Key8(i), MakeDatum(1, 1, 2, "xy", label).SerializeAsString());
    }
    WriteDb("LMDB", folder_ / "set", records);
  }

  // `data` adds fields to data_param in TRAIN; `loss` has the fields of the loss layer.
  SolverSpec Spec(const std::string& loss, const std::string& data = "",
                  const std::string& more = "") const {
    const std::string source =
        Join("data_param { backend: LMDB batch_size: 4 source: \"", folder_ / "set", "\" ");
    folder_.Write("net.prototxt",
                  Join("layer { name: \"d\" type: \"Data\" top: \"x\" top: \"y\" ", source, data,
                       " } include { phase: TRAIN } }\n",
                       "layer { name: \"d\" type: \"Data\" top: \"x\" top: \"y\" ", source,
                       " } include { phase: TEST } }\n",
                       "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"ip\" ",
                       "inner_product_param { num_output: 4 } }\n",
                       "layer { name: \"loss\" bottom: \"ip\" bottom: \"y\" top: \"loss\"\n", loss,
                       " }\n", more));
    return LoadSolver(
        folder_.Write("solver.prototxt",
                      Join("net: \"", folder_ / "net.prototxt", "\" max_iter: 10 ",
                           "base_lr: 0.1 lr_policy: \"fixed\" test_iter: 1 test_interval: 5")));
  }
  // Returns the class weights of the layer "loss" in each of the solver's nets.
  static std::vector<std::vector<float>> WeightsOf(const SolverSpec& spec) {
    std::vector<std::vector<float>> weights;
    for (const NetUse* use : {&spec.train, &spec.tests[0]}) {
      for (const LayerSpec& layer : FilterLayers(*use->net, use->state)) {
        const caffe::LossParameter& loss = layer.proto().loss_param();
        if (layer.name() != "loss") continue;
        EXPECT_FALSE(loss.has_class_weight_power());
        weights.emplace_back(loss.class_weight().begin(), loss.class_weight().end());
      }
    }
    return weights;
  }
  std::string Refusal(SolverSpec spec) const {
    return ErrorOf([&] { ResolveClassWeights(nullptr, &spec); }).second;
  }

  const TempFolder folder_;
};

constexpr char kWeighted[] = "type: \"SoftmaxWithLoss\" loss_param { class_weight_power: 1 }";

TEST_F(ClassWeightsTest, AreWrittenIntoTheTrainingNetAndTheTestNet) {
  SolverSpec spec = Spec(kWeighted);
  const LogCollector log;
  EXPECT_TRUE(ResolveClassWeights(nullptr, &spec));
  const auto expected = ElementsAre(FloatEq(20 / 48.0f), FloatEq(20 / 9.0f), FloatEq(20 / 3.0f), 1);
  EXPECT_THAT(WeightsOf(spec), ElementsAre(expected, expected));
  EXPECT_THAT(log.lines, Contains("Layer 'loss': class_weight_power: 1 gives the class weights "
                                  "0.416667, 2.22222, 6.66667, 1"));
  EXPECT_FALSE(ResolveClassWeights(nullptr, &spec)) << "there is no power any more";
}

TEST_F(ClassWeightsTest, IgnoredLabelsAndThoseOfInfogainLossCountToo) {
  SolverSpec spec = Spec(
      "type: \"InfogainLoss\" bottom: \"h\" loss_param { class_weight_power: 1 ignore_label: 0 } ");
  // The matrix is an output of a layer before the loss.
  folder_.Write(
      "net.prototxt",
      Join("layer { name: \"m\" type: \"DummyData\" top: \"h\" dummy_data_param { shape { ",
           "dim: 4 dim: 4 } } }\n", ReadBytes(folder_ / "net.prototxt")));
  spec = LoadSolver(folder_ / "solver.prototxt");
  EXPECT_TRUE(ResolveClassWeights(nullptr, &spec));
  EXPECT_THAT(WeightsOf(spec)[0], ElementsAre(1, FloatEq(4 / 6.0f), FloatEq(4 / 2.0f), 1));
}

TEST_F(ClassWeightsTest, WithoutAPowerNothingIsRead) {
  SolverSpec spec = Spec("type: \"SoftmaxWithLoss\"");
  std::filesystem::remove_all(folder_ / "set");
  EXPECT_FALSE(ResolveClassWeights(nullptr, &spec));
  EXPECT_THAT(WeightsOf(spec), ElementsAre(IsEmpty(), IsEmpty()));
}

// Only rank 0 has the data set.
TEST_F(ClassWeightsTest, OtherRanksGetThemFromRankZero) {
  constexpr int kRanks = 3;
  Meeting meeting(kRanks);
  std::vector<SolverSpec> specs;
  specs.push_back(Spec(kWeighted));
  const std::string text = ReadBytes(folder_ / "net.prototxt");
  const std::string set = folder_ / "set";
  std::string absent = text;
  for (size_t at; (at = absent.find(set)) != absent.npos;) absent.replace(at, set.size(), "absent");
  folder_.Write("net.prototxt", absent);
  while (specs.size() < kRanks) specs.push_back(LoadSolver(folder_ / "solver.prototxt"));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadGroup group(meeting, rank, true);
      EXPECT_TRUE(ResolveClassWeights(&group, &specs[static_cast<size_t>(rank)]));
    });
  }
  threads.clear();
  for (const SolverSpec& spec : specs) EXPECT_EQ(WeightsOf(spec), WeightsOf(specs[0]));
}

TEST_F(ClassWeightsTest, RefusesBalancedClasses) {
  EXPECT_THAT(Refusal(Spec(kWeighted, "sampling: BALANCED")),
              HasSubstr("net.prototxt:5:38: layer 'loss' (SoftmaxWithLoss): layer 'd' balances the "
                        "classes already (sampling: BALANCED); remove one of the two, or write "
                        "class_weight"));
}

TEST_F(ClassWeightsTest, RefusesLabelsThatCannotBeCounted) {
  static_cast<void>(Spec(kWeighted));  // writes the net
  const auto with_labels = [&](const std::string& layer) {
    std::string text = ReadBytes(folder_ / "net.prototxt");
    const std::string bottom = "bottom: \"ip\" bottom: \"y\"";
    text.replace(text.find(bottom), bottom.size(), "bottom: \"ip\" bottom: \"z\"");
    folder_.Write("other.prototxt", layer + "\n" + text);
    return LoadSolver(folder_.Write("other_solver.prototxt",
                                    Join("train_net: \"", folder_ / "other.prototxt",
                                         "\" max_iter: 10 base_lr: 0.1 lr_policy: \"fixed\"")));
  };
  EXPECT_THAT(Refusal(with_labels("layer { name: \"z\" type: \"DummyData\" top: \"z\" "
                                  "dummy_data_param { shape { dim: 4 } } }")),
              HasSubstr("class_weight_power counts single labels of Data, ImageData and HDF5Data "
                        "layers, but these are output 0 of layer 'z' (DummyData); write "
                        "class_weight instead"));
  EXPECT_THAT(
      Refusal(with_labels("layer { name: \"c\" type: \"DummyData\" top: \"c\" "
                          "dummy_data_param { shape { dim: 4 } } }\n"
                          "layer { name: \"z\" type: \"AbsVal\" bottom: \"c\" top: \"z\" }")),
      HasSubstr("class_weight_power needs the labels of a data layer, but layers compute "
                "these labels; write class_weight instead"));
}

TEST_F(ClassWeightsTest, RefusesALossOfTheTestNetAlone) {
  EXPECT_THAT(
      Refusal(Spec(kWeighted, "",
                   "layer { name: \"own\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: "
                   "\"y\" top: \"own\" loss_param { class_weight_power: 1 } include { phase: "
                   "TEST } }")),
      HasSubstr("layer 'own' (SoftmaxWithLoss): class_weight_power takes the weights of the "
                "training net's loss of the same name, and there is none; write "
                "class_weight instead"));
}

}  // namespace
}  // namespace trainer
