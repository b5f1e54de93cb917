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

// Two whole batches of 16 and one of 8.
TEST_F(EvaluationTest, InOnePassEachRecordCountsOnce) {
  const Evaluation pass = Compare(kExactPass);
  EXPECT_EQ(pass.batches, 3);
  EXPECT_EQ(pass.records, DigitsNet::kRecords);
  EXPECT_EQ(pass.confusion->total(), DigitsNet::kRecords);
  EXPECT_NEAR(pass.confusion->accuracy(), pass.outputs[0].mean(), 1e-6);
  digits_.text = Replaced(digits_.text, "batch_size: 16", "batch_size: 40");
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
  digits_.text = Replaced(digits_.text, "num_output: 10", "num_output: 300");
  digits_.SaveWeights();
  const std::string text = ToText(Compare(2));
  EXPECT_THAT(text, HasSubstr("The classes with the lowest recall, of 300:"));
  EXPECT_THAT(text, Not(HasSubstr("answer (columns)")));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 60);
}

TEST_F(EvaluationTest, ComparesNamedBlobsOrTheInputsOfALoss) {
  digits_.text = Replaced(digits_.text,
                          "type: \"Accuracy\" bottom: \"ip\" bottom: \"label\" top: \"accuracy\"",
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
  digits_.text =
      Replaced(digits_.text, "type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\"",
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

}  // namespace
}  // namespace trainer
