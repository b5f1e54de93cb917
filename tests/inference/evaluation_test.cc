#include "trainer/inference/evaluate/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "inference/digits_net.h"
#include "support/error_of.h"
#include "support/log_collector.h"
#include "trainer/base/text/json_reader.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class EvaluationTest : public testing::Test {
 protected:
  // Evaluates `iterations` batches, or one pass.
  Evaluation Run(int iterations, EvaluationOptions options = {}) {
    const NetSpec spec = digits_.Load();
    const caffe::NetState state = StateOf(caffe::TEST);
    InferenceNet net(spec, *digits_.device,
                     {.state = state,
                      .memory = BufferReuse::kSeparate,
                      .test_batches = ChooseTestBatches(spec, state, iterations)});
    options.iterations = iterations;
    options.weights = {digits_.weights()};
    options.file = spec.file;
    return Evaluate(net, options);
  }
  Evaluation Compare(int iterations, EvaluationOptions options = {}) {
    options.confusion = true;
    return Run(iterations, options);
  }

  DigitsNet digits_;
};

TEST_F(EvaluationTest, TheConfusionMatrixAgreesWithTheAccuracyLayer) {
  const Evaluation result = Compare(2);
  EXPECT_EQ(result.net, "small");
  EXPECT_EQ(result.batches, 2);
  ASSERT_EQ(result.outputs.size(), 2u);
  EXPECT_EQ(result.outputs[0].name, "accuracy");
  EXPECT_EQ(result.outputs[0].loss_weight, 0);
  EXPECT_EQ(result.outputs[1].name, "loss");
  EXPECT_EQ(result.outputs[1].loss_weight, 1);
  EXPECT_NEAR(result.outputs[1].mean(), result.loss, 1e-6);
  ASSERT_TRUE(result.confusion);
  EXPECT_EQ(result.confusion->total(), 32);
  EXPECT_EQ(result.confusion->classes(), 10);
  EXPECT_NEAR(result.confusion->accuracy(), result.outputs[0].mean(), 1e-6);
}

// One pass has two whole batches of 16 and one of 8.
TEST_F(EvaluationTest, InOnePassEachRecordCountsOnce) {
  const Evaluation pass = Compare(kExactPass);
  EXPECT_EQ(pass.batches, 3);
  EXPECT_EQ(pass.records, DigitsNet::kRecords);
  EXPECT_EQ(pass.confusion->total(), DigitsNet::kRecords);
  EXPECT_NEAR(pass.confusion->accuracy(), pass.outputs[0].mean(), 1e-6);
  digits_.text = Edited(digits_.text, "batch_size: 16", "batch_size: 40");
  const Evaluation whole = Compare(1);
  EXPECT_EQ(whole.confusion->hits(), pass.confusion->hits());
  EXPECT_NEAR(whole.loss, pass.loss, 1e-6);
}

TEST_F(EvaluationTest, WarnsOfANumberOfBatchesThatDoesNotFit) {
  const LogCollector log;
  const Evaluation result = Run(5);
  EXPECT_THAT(log.lines, Contains(HasSubstr(
                             "--iterations 5 with batches of 16 reads 80 records, and the data "
                             "of layer 'digits' has 40: some records count more often than "
                             "others; without --iterations, a test reads each record exactly")));
  EXPECT_THAT(ToText(result), AllOf(StartsWith("accuracy = "), HasSubstr("\nloss = ")));
}

TEST_F(EvaluationTest, WarnsOfADifferenceFromTheTestsOfTheRun) {
  const LogCollector log;
  EvaluationOptions options;
  options.solver_test_iter = 2;
  Run(kExactPass, options);
  EXPECT_THAT(log.lines, Contains(HasSubstr("the tests during the run read 32 records (test_iter "
                                            "2, batches of 16), so their results differ from this "
                                            "test of 40 records")));
}

TEST_F(EvaluationTest, WarnsOfInputsThatNothingFills) {
  digits_.text = ReadText(digits_.folder() / "deploy.prototxt");
  const NetSpec spec = digits_.Load();
  EXPECT_EQ(ChooseTestBatches(spec, StateOf(caffe::TEST), kExactPass), 50);
  const LogCollector log;
  Run(1);
  EXPECT_THAT(log.lines, Contains(HasSubstr("no data fills data: the input is all zeros")));
}

TEST_F(EvaluationTest, PrintsTablesWithNames) {
  EvaluationOptions options;
  options.class_names =
      digits_.folder().Write("names.txt", "nil\nunit\npair\n3\n4\n5\n6\n7\n8\nnine\n");
  const std::string text = ToText(Compare(2, options));
  EXPECT_THAT(text, StartsWith("accuracy "));
  EXPECT_THAT(text, HasSubstr(" of 32 records; mean recall of the classes "));
  EXPECT_THAT(text, HasSubstr("\n    0  nil "));
  EXPECT_THAT(text, HasSubstr("\nlabel  0  1  2"));
  EXPECT_THAT(text, HasSubstr("The most frequent mistakes:"));
  options.class_names = digits_.folder().Write("few.txt", "nil\n");
  EXPECT_EQ(ErrorOf([&] { Compare(2, options); }).first, ErrorCode::kData);
}

TEST_F(EvaluationTest, PrintsTheWorstOfManyClasses) {
  digits_.text = Edited(digits_.text, "num_output: 10", "num_output: 300");
  digits_.SaveWeights();
  const std::string text = ToText(Compare(2));
  EXPECT_THAT(text, HasSubstr("The classes with the lowest recall, of 300:"));
  EXPECT_THAT(text, Not(HasSubstr("answer (columns)")));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 60);
}

TEST_F(EvaluationTest, ComparesNamedBlobsOrTheInputsOfALoss) {
  digits_.text =
      Edited(digits_.text, "type: \"Accuracy\" bottom: \"ip\" bottom: \"label\" top: \"accuracy\"",
             "type: \"ArgMax\" bottom: \"ip\" top: \"best\"");
  const std::string of_loss = ToJson(Compare(2)).ToString();
  const auto named = [&](const std::string& scores, const std::string& label) {
    EvaluationOptions options;
    options.scores = scores;
    options.label = label;
    return ToJson(Compare(2, options)).ToString();
  };
  EXPECT_EQ(named("ip", "label"), of_loss);
  const auto refused = [&](const std::string& scores, const std::string& label, ErrorCode code,
                           const std::string& part) {
    const auto [thrown, message] = ErrorOf([&] { named(scores, label); });
    EXPECT_EQ(thrown, code);
    EXPECT_THAT(message, HasSubstr(part));
  };
  refused("ipp", "label", ErrorCode::kUsage, "--scores: the net has no blob 'ipp'. Did you mean");
  refused("ip", "", ErrorCode::kUsage, "--scores and --label need each other");
  refused("ip", "data", ErrorCode::kConfig, "labels 'data' of shape");
  digits_.text = Edited(digits_.text, "type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\"",
                        "type: \"Reduction\" bottom: \"ip\"");
  refused("", "", ErrorCode::kConfig, "name the two blobs with --scores and --label");
}

TEST_F(EvaluationTest, WritesTheConfusionAndTheImagesWithTheHighestLoss) {
  EvaluationOptions options;
  options.top_losses = 24;
  const Evaluation result = Compare(2, options);
  ASSERT_EQ(result.top_losses.size(), 24u);
  for (size_t i = 0; i + 1 < result.top_losses.size(); ++i) {
    EXPECT_GE(result.top_losses[i].prediction.loss, result.top_losses[i + 1].prediction.loss);
  }
  EXPECT_NE(result.top_losses[0].prediction.label, result.top_losses[0].prediction.predicted);
  WriteEvaluation(digits_.folder().path(), result);
  EXPECT_EQ(ReadText(digits_.folder() / "confusion.json"), ToJson(result).ToString());
  const auto worst = ParseJsonObject(ReadText(digits_.folder() / "worst.json"));
  ASSERT_TRUE(worst);
  const auto& images = JsonField(*worst, "pictures")->list_value().values();
  ASSERT_EQ(images.size(), 24);
  EXPECT_THAT(JsonText(images[0].struct_value(), "png"), StartsWith("iVBORw0KGgo"));
  EXPECT_EQ(JsonNumber(images[0].struct_value(), "answer"),
            static_cast<double>(result.top_losses[0].prediction.predicted));
}

// Returns the value of a metric of the test.
double MetricOf(const Evaluation& evaluation, const std::string& name) {
  for (const MetricValue& metric : evaluation.metrics->values) {
    if (metric.name == name) return metric.value;
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

TEST_F(EvaluationTest, MetricsAreThoseOfAllRecords) {
  const Evaluation pass = Run(kExactPass);
  ASSERT_TRUE(pass.metrics);
  EXPECT_EQ(pass.metrics->values.size(), 4u);
  EXPECT_NEAR(MetricOf(pass, "accuracy"), pass.outputs[0].mean(), 1e-6);
  EXPECT_GE(MetricOf(pass, "top_5"), MetricOf(pass, "accuracy"));
  digits_.text = Edited(digits_.text, "batch_size: 16", "batch_size: 40");
  const Evaluation whole = Compare(1);
  EXPECT_NEAR(MetricOf(whole, "macro_f1"), MetricOf(pass, "macro_f1"), 1e-12);
  EXPECT_NEAR(MetricOf(whole, "balanced_accuracy"), whole.confusion->MeanRecall(), 1e-12);
  EXPECT_THAT(ToText(pass), HasSubstr("\nmetric              value  95 % interval"));
  EXPECT_THAT(ToJson(pass).ToString(), HasSubstr("\"name\": \"macro_f1\""));
}

TEST_F(EvaluationTest, TheUserChoosesMetrics) {
  EvaluationOptions options;
  options.metrics = {"auc", "brier", "log_loss"};
  const Evaluation chosen = Run(2, options);
  EXPECT_NEAR(MetricOf(chosen, "log_loss"), chosen.loss, 1e-5);
  options.metrics = std::vector<std::string>();
  EXPECT_FALSE(Run(2, options).metrics);
  options.metrics = {"rmse"};
  const auto [code, message] = ErrorOf([&] { Run(2, options); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(message, HasSubstr("--metrics: 'rmse' is a metric of numbers, but layer 'accuracy' "
                                 "(Accuracy) compares classes"));
}

TEST_F(EvaluationTest, ANetThatComparesNothingHasNoMetrics) {
  digits_.text =
      Edited(digits_.text, "type: \"Accuracy\" bottom: \"ip\" bottom: \"label\" top: \"accuracy\"",
             "type: \"ArgMax\" bottom: \"ip\" top: \"best\"");
  digits_.text = Edited(digits_.text, "type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\"",
                        "type: \"Reduction\" bottom: \"ip\"");
  EXPECT_FALSE(Run(1).metrics);
  EvaluationOptions options;
  options.metrics = {"f1"};
  const auto [code, message] = ErrorOf([&] { Run(1, options); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(message, HasSubstr("the net has no layer that compares outputs with targets"));
  options.scores = "ip";
  options.label = "label";
  EXPECT_EQ(Run(1, options).metrics->values.size(), 1u);
}

TEST_F(EvaluationTest, SoftTargetsHaveNoMetricsUnlessAskedFor) {
  const std::string layers = R"(
layer { name: "soft" type: "DummyData" top: "soft"
  dummy_data_param { shape { dim: 16 dim: 10 } data_filler { type: "constant" value: 0.25 } } }
layer { name: "sigmoid" type: "SigmoidCrossEntropyLoss" bottom: "ip" bottom: "soft" top: "soft loss" }
)";
  digits_.text =
      Edited(digits_.text, "type: \"Accuracy\" bottom: \"ip\" bottom: \"label\" top: \"accuracy\"",
             "type: \"ArgMax\" bottom: \"ip\" top: \"best\"");
  digits_.text = Edited(digits_.text, "type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\"",
                        "type: \"Reduction\" bottom: \"ip\"") +
                 layers;
  EXPECT_FALSE(Run(2).metrics);
  EvaluationOptions options;
  options.metrics = {"f1"};
  EXPECT_THAT(ErrorOf([&] { Run(2, options); }).second, HasSubstr("is neither 0 nor 1"));
}

TEST_F(EvaluationTest, WritesPredictionsOfAllRecords) {
  EvaluationOptions options;
  options.predictions = digits_.folder() / "p.csv";
  const Evaluation result = Run(kExactPass, options);
  const std::string text = ReadText(options.predictions);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + DigitsNet::kRecords);
  EXPECT_THAT(text, StartsWith("record,label,answer,p0,p1,p2,p3,p4,p5,p6,p7,p8,p9\n0,"));
  EXPECT_THAT(text, HasSubstr("\n39,"));
  options.predictions = "p.txt";
  EXPECT_EQ(ErrorOf([&] { Run(1, options); }).first, ErrorCode::kUsage);
}

TEST_F(EvaluationTest, WritesTheCurvesOfARun) {
  EvaluationOptions options;
  options.curves = true;
  const Evaluation result = Compare(kExactPass, options);
  EXPECT_EQ(result.metrics->curves.ranks.size(), 8u);
  WriteEvaluation(digits_.folder().path(), result);
  const auto curves = ParseJsonObject(ReadText(digits_.folder() / "curves.json"));
  ASSERT_TRUE(curves);
  EXPECT_EQ(JsonField(*curves, "curves")->list_value().values().size(), 8);
  EXPECT_FALSE(JsonField(*curves, "reliability")->list_value().values().empty());
}

TEST_F(EvaluationTest, ARunWithoutClassesHasNoConfusionMatrix) {
  const std::string numbers = R"(
layer { name: "zeros" type: "DummyData" top: "zeros"
  dummy_data_param { shape { dim: 16 dim: 10 } data_filler { type: "constant" value: 0 } } }
layer { name: "distance" type: "EuclideanLoss" bottom: "ip" bottom: "zeros" top: "distance" }
)";
  digits_.text =
      Edited(digits_.text, "type: \"Accuracy\" bottom: \"ip\" bottom: \"label\" top: \"accuracy\"",
             "type: \"ArgMax\" bottom: \"ip\" top: \"best\"");
  digits_.text = Edited(digits_.text, "type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\"",
                        "type: \"Reduction\" bottom: \"ip\"") +
                 numbers;
  EvaluationOptions options;
  options.confusion_may_lack = true;
  const Evaluation result = Compare(2, options);
  EXPECT_FALSE(result.confusion);
  ASSERT_TRUE(result.metrics);
  double squares = 0;
  for (const double rmse : result.metrics->values[1].each) squares += rmse * rmse;
  for (const OutputMean& output : result.outputs) {
    if (output.name != "distance") continue;
    EXPECT_NEAR(squares / 2, output.mean(), 1e-3 * squares);
  }
  EXPECT_THAT(ToText(result), HasSubstr("\nnumber "));
}

}  // namespace
}  // namespace trainer
