// Warnings about settings that spoil a run.

#include "preflight/lints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/source_folder.h"
#include "support/temp_folder.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class LintTest : public testing::Test {
 protected:
  SolverSpec Spec(const std::string& fields, const std::string& net = kNet) const {
    folder_.Write("net.prototxt", net);
    return LoadSolver(folder_.Write("solver.prototxt",
                                    Join("net: \"", folder_ / "net.prototxt", "\" max_iter: 10 ",
                                         "test_iter: 1 test_interval: 5 ", fields)));
  }
  std::vector<std::string> LintsOf(const SolverSpec& spec) {
    Diagnostics diagnostics;
    LintRates(spec, &diagnostics);
    LintSolver(spec, &diagnostics);
    EXPECT_EQ(diagnostics.ExitCode(), 0);
    return diagnostics.WarningTexts();
  }

  static constexpr char kNet[] = R"(
layer { name: "data" type: "Data" top: "x" top: "y" include { phase: TRAIN }
        transform_param { scale: 0.00390625 } data_param { source: "a" batch_size: 8 } }
layer { name: "data" type: "Data" top: "x" top: "y" include { phase: TEST }
        transform_param { scale: 0.00390625 } data_param { source: "b" batch_size: 8 } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "y" top: "loss" }
)";
  const TempFolder folder_;
};

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.rfind(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(LintTest, UsualSettingsHaveNoWarning) {
  EXPECT_THAT(LintsOf(Spec("base_lr: 0.05 lr_policy: \"fixed\"")), IsEmpty());
}

TEST_F(LintTest, TheLearningRateMustSuitTheType) {
  EXPECT_THAT(LintsOf(Spec("base_lr: 3 lr_policy: \"fixed\" type: \"Adam\"")),
              ElementsAre(HasSubstr("the learning rate is up to 3, and Adam changes each weight")));
  EXPECT_THAT(LintsOf(Spec("base_lr: 30 lr_policy: \"fixed\"")),
              ElementsAre(HasSubstr("the learning rate is up to 30, and SGD diverges")));
  EXPECT_THAT(LintsOf(Spec("base_lr: 30 lr_policy: \"fixed\" clip_gradients: 1")), IsEmpty());
  EXPECT_THAT(LintsOf(Spec("base_lr: 30 lr_policy: \"fixed\" clip_value: 0.1")), IsEmpty());
  EXPECT_THAT(LintsOf(Spec("base_lr: 0 lr_policy: \"fixed\"")),
              ElementsAre(HasSubstr("the learning rate is always 0")));
  EXPECT_THAT(LintsOf(Spec("base_lr: 1 lr_policy: \"multistep\" gamma: 0.1 stepvalue: 5 "
                           "stepvalue: 12")),
              ElementsAre(HasSubstr("stepvalue 12 is never reached, because max_iter is 10")));
}

TEST_F(LintTest, APlateauNeedsAMeanOfLosses) {
  const std::string plateau =
      "base_lr: 0.5 lr_policy: \"plateau\" gamma: 0.1 plateau_winsize: 4 plateau_winsize: 9 ";
  EXPECT_THAT(LintsOf(Spec(plateau)),
              ElementsAre(EndsWith("compares the losses of single batches, because average_loss is "
                                   "1, so one easy batch delays the next step; set average_loss to "
                                   "about the iterations of an epoch")));
  const SolverSpec spec = Spec(plateau + "average_loss: 5");
  EXPECT_THAT(LintsOf(spec), IsEmpty());
  Diagnostics diagnostics;
  const RateRange range = LintRates(spec, &diagnostics);
  EXPECT_FLOAT_EQ(range.first, 0.5f);
  EXPECT_FLOAT_EQ(range.last, 0.05f) << "the second step cannot come within 10 iterations";
  const RateRange warm = LintRates(Spec(plateau + "average_loss: 5 warmup_iter: 6"), &diagnostics);
  EXPECT_FLOAT_EQ(warm.last, 0.5f) << "the first window begins after the warm-up";
}

TEST_F(LintTest, ARateThatIsNotFiniteIsAnError) {
  Diagnostics diagnostics;
  LintRates(Spec("base_lr: 1 lr_policy: \"exp\" gamma: 1e38"), &diagnostics);
  EXPECT_EQ(diagnostics.ExitCode(), static_cast<int>(ErrorCode::kDiverged));
}

TEST_F(LintTest, ASoftmaxBeforeTheLossIsASecondOne) {
  const std::string net =
      Replaced(kNet, "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\"",
               "layer { name: \"prob\" type: \"Softmax\" bottom: \"ip\" top: \"prob\" }\n"
               "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"prob\"");
  EXPECT_THAT(
      LintsOf(Spec("base_lr: 0.1 lr_policy: \"fixed\"", net)),
      ElementsAre(AllOf(HasSubstr("layer 'loss' (SoftmaxWithLoss) computes a Softmax itself"),
                        HasSubstr("give the loss the input of 'prob'"))));
  EXPECT_THAT(LintsOf(Spec("base_lr: 0.1 lr_policy: \"fixed\"",
                           Replaced(net, "SoftmaxWithLoss", "SoftmaxFocalLoss"))),
              ElementsAre(HasSubstr("layer 'loss' (SoftmaxFocalLoss) computes a Softmax itself")));
}

TEST_F(LintTest, AMessageOfAnotherTypeHasNoEffect) {
  const std::string fields = "base_lr: 0.1 lr_policy: \"fixed\"";
  EXPECT_THAT(
      LintsOf(Spec(fields, Replaced(kNet, "\"loss\" }",
                                    "\"loss\" softmax_param { axis: 1 }\n"
                                    "  focal_loss_param { gamma: 2 } dropout_param { } }"))),
      ElementsAre(
          EndsWith(
              "net.prototxt:9:33: layer 'loss' (SoftmaxWithLoss): dropout_param has no effect, "
              "because SoftmaxWithLoss reads loss_param and softmax_param; move its fields "
              "there, or remove it"),
          HasSubstr("net.prototxt:9:3: layer 'loss' (SoftmaxWithLoss): focal_loss_param has no")));
  const std::string relu = Join(kNet,
                                "layer { name: \"r\" type: \"BNLL\" bottom: \"x\" top: \"r\"\n"
                                "  relu_param { } data_param { limit: 3 } }");
  EXPECT_THAT(LintsOf(Spec(fields, relu)),
              ElementsAre(EndsWith("layer 'r' (BNLL): relu_param has no effect, because BNLL reads "
                                   "no such message; remove it")))
      << "--limit sets data_param in each data layer";
}

TEST_F(LintTest, ALayerOfAnOldNetHasItsOwnMessages) {
  const std::string net =
      "layers { name: \"d\" type: DATA top: \"x\" top: \"y\" data_param { source: \"a\" "
      "batch_size: 8 } }\n"
      "layers { name: \"ip\" type: INNER_PRODUCT bottom: \"x\" top: \"ip\"\n"
      "  inner_product_param { num_output: 4 } convolution_param { pad: 1 } }\n"
      "layers { name: \"loss\" type: SOFTMAX_LOSS bottom: \"ip\" bottom: \"y\" top: \"loss\" }";
  EXPECT_THAT(LintsOf(Spec("base_lr: 0.1 lr_policy: \"fixed\"", net)),
              ElementsAre(HasSubstr("net.prototxt:3:41: layer 'ip' (InnerProduct): "
                                    "convolution_param has no effect, because InnerProduct reads "
                                    "inner_product_param; move")));
}

TEST_F(LintTest, ADiceLossNeedsProbabilities) {
  const std::string fields = "base_lr: 0.1 lr_policy: \"fixed\"";
  const std::string net = Replaced(kNet, "SoftmaxWithLoss", "DiceLoss");
  EXPECT_THAT(LintsOf(Spec(fields, net)),
              ElementsAre(AllOf(HasSubstr("net.prototxt:8:"),
                                HasSubstr("layer 'loss' (DiceLoss) needs probabilities from 0 to "
                                          "1, but its bottom 0 has the scores of layer 'ip' "
                                          "(InnerProduct)"),
                                HasSubstr("put a Softmax layer between them"))));
  const std::string prob =
      Replaced(net, "layer { name: \"loss\" type: \"DiceLoss\" bottom: \"ip\"",
               "layer { name: \"prob\" type: \"Sigmoid\" bottom: \"ip\" top: \"prob\" }\n"
               "layer { name: \"loss\" type: \"DiceLoss\" bottom: \"prob\"");
  EXPECT_THAT(LintsOf(Spec(fields, prob)), IsEmpty());
}

TEST_F(LintTest, ALossOfEqualShapesHasItsScoresFirst) {
  const std::string net =
      Replaced(kNet, "type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"y\"",
               "type: \"SigmoidCrossEntropyLoss\" bottom: \"y\" bottom: \"ip\"");
  EXPECT_THAT(
      LintsOf(Spec("base_lr: 0.1 lr_policy: \"fixed\"", net)),
      ElementsAre(HasSubstr("layer 'loss' (SigmoidCrossEntropyLoss): bottom 0 comes from data, "
                            "layer 'data' (Data), and bottom 1 is computed by layer 'ip' "
                            "(InnerProduct), but bottom 1 must be the targets and gets no "
                            "gradient, so nothing is learned; swap the two bottoms")));
}

TEST_F(LintTest, ASoftmaxOfSingleScoresIsAlwaysOne) {
  const SolverSpec spec = Spec("base_lr: 0.1 lr_policy: \"fixed\"", R"(
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 1 } } }
layer { name: "prob" type: "Softmax" bottom: "x" top: "prob" }
layer { name: "line" type: "Softmax" bottom: "x" top: "line" softmax_param { axis: 0 } }
)");
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  ParamStore params(*device);
  const Net net(*spec.train.net, {}, *device, params);
  Diagnostics diagnostics;
  LintTrainingNet(net, &diagnostics);
  EXPECT_THAT(diagnostics.WarningTexts(),
              ElementsAre(HasSubstr("net.prototxt:3:1: layer 'prob' (Softmax): its input has "
                                    "length 1 on axis 1, so each output is 1")));
}

TEST_F(LintTest, TestsMustSeeWhatTrainingSees) {
  const std::string net = Replaced(kNet, "scale: 0.00390625", "mean_value: 33 mirror: true");
  EXPECT_THAT(
      LintsOf(Spec("base_lr: 0.1 lr_policy: \"fixed\"", net)),
      UnorderedElementsAre(HasSubstr("layer 'data' (Data) has scale 1 in TEST and scale 0.0039"),
                           HasSubstr("has mean_value 33 in TEST and no mean in TRAIN"),
                           HasSubstr("has mirror: true in TEST and none in TRAIN")));
}

TEST_F(LintTest, FoldersOfTrainingAndTestsMustHaveTheSameClasses) {
  for (const char* name : {"a/cat", "a/dog", "b/dog"}) {
    std::filesystem::create_directories(folder_ / name);
  }
  const auto layer = [&](const char* phase, const char* source) {
    return Join(
        "layer { name: \"data\" type: \"ImageData\" top: \"x\" top: \"y\" include { phase: ", phase,
        " } image_data_param { source: \"", folder_ / source, "\" } }\n");
  };
  const std::string rest = std::string(kNet).substr(std::string(kNet).find("layer { name: \"ip\""));
  const std::string net = layer("TRAIN", "a") + layer("TEST", "b") + rest;
  const char* fields = "base_lr: 0.05 lr_policy: \"fixed\"";
  EXPECT_THAT(LintsOf(Spec(fields, net)),
              ElementsAre(AllOf(HasSubstr("net.prototxt:2:"),
                                HasSubstr("class 0 is 'dog' in TEST and 'cat' in TRAIN"))));
  std::filesystem::create_directories(folder_ / "b/cat");
  EXPECT_THAT(LintsOf(Spec(fields, net)), IsEmpty());
}

TEST_F(LintTest, LabelsWithoutARecordAreNamed) {
  Diagnostics diagnostics;
  DataAudit data;
  data.source = "set";
  data.all_labels = true;
  data.labels[0] = {};
  data.labels[2] = {};
  LabelReader reader;
  reader.name = "layer 'loss' (SoftmaxWithLoss)";
  reader.use.classes = 4;
  LintLabels(data, reader, &diagnostics);
  EXPECT_THAT(diagnostics.WarningTexts(),
              ElementsAre("set: 2 of the 4 classes of layer 'loss' (SoftmaxWithLoss) have no "
                          "record: 1, 3"));
}

// An example is the characters of a text: some bytes occur in no record, and spaces in most
// records.
TEST_F(LintTest, SeveralLabelsPerRecordAreNotCountedAsClassesOfRecords) {
  const SolverSpec spec = Spec("base_lr: 0.1 lr_policy: \"fixed\"", R"(
layer { name: "x" type: "Input" top: "x" top: "y"
        input_param { shape { dim: 2 dim: 3 dim: 5 } shape { dim: 2 dim: 3 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "x" bottom: "y" top: "loss"
        softmax_param { axis: 2 } }
)");
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  ParamStore params(*device);
  const Net net(*spec.train.net, {}, *device, params);
  const std::vector<LabelReader> readers = LabelReadersOf(net.graph());
  ASSERT_EQ(readers.size(), 1u);
  EXPECT_EQ(readers[0].labels_per_record, 3);
  Diagnostics diagnostics;
  DataAudit data;
  data.source = "set";
  data.all_labels = data.sorted = true;
  data.labels[0].count = 1000;
  data.labels[1].count = 10;
  LintLabels(data, readers[0], &diagnostics);
  EXPECT_THAT(diagnostics.WarningTexts(), IsEmpty());
}

class ImbalanceTest : public LintTest {
 protected:
  ImbalanceTest() {
    data_.source = "set";
    data_.all_labels = true;
    data_.labels[0].count = 1000;
    data_.labels[1].count = 100;
    data_.labels[2].count = 250;
    use_.classes = 3;
  }
  // Returns the warning for a net whose loss and data layer have these fields.
  std::string Warning(const std::string& loss_fields = "",
                      const std::string& type = "SoftmaxWithLoss", bool image_data = false) const {
    const std::string net = Replaced(Replaced(kNet, "\"loss\" }", "\"loss\" " + loss_fields + " }"),
                                     "SoftmaxWithLoss", type);
    const SolverSpec spec = Spec("base_lr: 0.1 lr_policy: \"fixed\"", net);
    const std::vector<LayerSpec> layers = FilterLayers(*spec.train.net, spec.train.state);
    caffe::LayerParameter data = layers.front().proto();
    if (image_data) data.set_type("ImageData");
    return DescribeImbalance(
        data_, use_,
        BalanceFieldsOf(layers.back(),
                        image_data ? LayerSpec(data, layers.front().Where()) : layers.front()));
  }

  DataAudit data_;
  LabelConsumer use_;
};

TEST_F(ImbalanceTest, FromTenToOneTheLinesToAddAreNamed) {
  EXPECT_THAT(
      Warning(),
      AllOf(StartsWith("the classes of set are unbalanced, 10 : 1: class 0 has 1000 records "
                       "and class 1 has 100, so the net may learn to ignore class 1; add "
                       "class_weight_power: 1 to loss_param, or sampling: BALANCED to "
                       "data_param of layer 'data' ("),
            EndsWith("net.prototxt:3:47)")));
  data_.labels[1].count = 101;
  EXPECT_EQ(Warning(), "");
}

TEST_F(ImbalanceTest, EachLayerIsToldWhatItSupports) {
  EXPECT_THAT(Warning("", "MultinomialLogisticLoss"),
              HasSubstr("class 1; add sampling: BALANCED to data_param of layer 'data'"));
  EXPECT_THAT(Warning("", "SoftmaxWithLoss", true),
              HasSubstr("or sampling: BALANCED to image_data_param of layer 'data'"));
  EXPECT_EQ(Warning("", "Accuracy"), "");
  EXPECT_EQ(Warning("", "InfogainLoss"), "") << "its matrix may weigh the classes";
}

TEST_F(ImbalanceTest, AnyCorrectionIsEnough) {
  EXPECT_EQ(Warning("loss_param { class_weight_power: 0.5 }"), "");
  EXPECT_EQ(Warning("loss_param { class_weight: 1 class_weight: 9 class_weight: 4 }"), "");
  data_.balanced = true;
  EXPECT_EQ(Warning(), "");
}

TEST_F(ImbalanceTest, IgnoredLabelsAndThoseThatAreNoClassesDoNotCount) {
  use_.has_ignore = true;
  use_.ignore = 1;
  data_.labels[17].count = 1;
  EXPECT_EQ(Warning(), "");
}

TEST_F(ImbalanceTest, ASampleMustHaveFiftyRecordsForEachClass) {
  data_.all_labels = false;
  data_.examined = 149;
  EXPECT_EQ(Warning(), "");
  data_.examined = 150;
  EXPECT_THAT(Warning(), HasSubstr("unbalanced, in a sample about 10 : 1: class 0"));
}

TEST(LintModelsTest, TheSolversOfModelsHaveNoWarnings) {
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SourceFolder() + "/models")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("solver") || !name.ends_with(".prototxt")) continue;
    Diagnostics diagnostics;
    const SolverSpec spec = LoadSolver(entry.path().string());
    LintRates(spec, &diagnostics);
    LintSolver(spec, &diagnostics);
    EXPECT_THAT(diagnostics.WarningTexts(), IsEmpty()) << entry.path();
  }
}

}  // namespace
}  // namespace trainer
