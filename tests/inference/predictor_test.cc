#include "trainer/inference/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "inference/digits_net.h"
#include "trainer/base/file/memory_file.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/config/blob.h"
#include "trainer/inference/pack/pack_writer.h"
#include "trainer/inference/predict/classifier.h"
#include "trainer/inference/predict/image_input_flags.h"
#include "trainer/inference/predict/prediction_target.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class PredictorTest : public testing::Test {
 protected:
  PredictorOptions Options() const {
    PredictorOptions options;
    options.model = digits_.folder() / "deploy.prototxt";
    options.weights = {digits_.weights()};
    return options;
  }
  // Returns the scores of the first digits, as `trainer predict` computes them.
  std::vector<std::vector<float>> Expected(const std::vector<std::string>& paths) const {
    const PredictionTarget target = ResolvePredictionTarget(
        {.model = {.file = Options().model}, .weights = Options().weights, .batch = 1});
    const std::unique_ptr<Device> device = MakeCpuDevice();  // with a Predictor's threads
    InferenceNet net(target.net, *device, {.state = target.state});
    net.LoadWeights(target.weights);
    Classifier classifier(net.net(), "", {});
    ImagePaths source(paths, "");
    std::vector<std::vector<float>> scores;
    classifier.Run(source, 1, [&](const ImageScores& image) { scores.push_back(image.scores); });
    return scores;
  }
  // Returns the error that f() throws.
  template <class F>
  std::optional<PredictorError> Refusal(const F& f) const {
    try {
      f();
    } catch (const PredictorError& error) {
      return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return std::nullopt;
  }

  DigitsNet digits_;
};

TEST_F(PredictorTest, GivesTheNumbersOfPredict) {
  const std::vector<std::string> paths = digits_.WriteImages(3);
  const std::vector<std::vector<float>> expected = Expected(paths);
  Predictor predictor(Options());
  EXPECT_THAT(predictor.input_shape(), ElementsAre(1, 28, 28));
  EXPECT_THAT(predictor.output_shape(), ElementsAre(10));
  EXPECT_THAT(predictor.labels(), IsEmpty());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(predictor.PredictFile(paths[i]), expected[i]);
    const std::string bytes = ReadText(paths[i]).substr(std::string("P5 28 28 255\n").size());
    PredictorImage image;
    image.pixels = reinterpret_cast<const uint8_t*>(bytes.data());
    image.height = image.width = 28;
    image.channels = 1;
    EXPECT_EQ(predictor.Predict(image), expected[i]);
    const std::vector<float> values(image.pixels, image.pixels + 28 * 28);
    EXPECT_EQ(predictor.Run(values.data(), 1), expected[i]);
  }
}

TEST_F(PredictorTest, RunsMoreItemsThanABatch) {
  PredictorOptions options = Options();
  options.batch = 2;
  Predictor predictor(options);
  std::vector<float> values(5 * 28 * 28, 0.0f);
  for (size_t i = 0; i < 5; ++i) values[i * 28 * 28 + 300] = static_cast<float>(i);
  const std::vector<float> all = predictor.Run(values.data(), 5);
  ASSERT_THAT(all, SizeIs(50));
  for (size_t i = 0; i < 5; ++i) {
    const std::vector<float> one = predictor.Run(values.data() + i * 28 * 28, 1);
    for (size_t c = 0; c < 10; ++c) EXPECT_NEAR(one[c], all[i * 10 + c], 1e-6) << i;
  }
  EXPECT_THAT(predictor.Run(nullptr, 0), IsEmpty());
}

TEST_F(PredictorTest, OrdersOfChannelsAndGapsBetweenRowsGiveTheSame) {
  const std::string file = digits_.folder().Write(
      "c.ppm", std::string("P6 2 2 255\n\x0a\x14\x1e\x28\x32\x3c\x46\x50\x5a\x64\x6e\x78"));
  PredictorOptions options;
  options.model = digits_.folder().Write(
      "colour.prototxt",
      "# To prepare images as its training did: trainer predict --mean_value=1,2,3\n"
      R"(layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 5 dim: 3 dim: 2 dim: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 } }
)");
  const NetSpec spec = LoadNet(options.model);
  InferenceNet net(spec, *digits_.device, {.state = StateOf(caffe::TEST)});
  caffe::NetParameter model = WeightsOf(net.net());
  for (caffe::LayerParameter& layer : *model.mutable_layer()) {
    if (layer.name() != "ip") continue;
    for (int i = 0; i < 24; ++i)
      layer.mutable_blobs(0)->set_data(i, static_cast<float>(i % 12 + 1));
  }
  options.weights = {digits_.folder() / "colour.caffemodel"};
  WriteModel(options.weights[0], model);
  Predictor predictor(options);
  // Blue is 30, 60, 90, 120 minus 1, green 20, 50, 80, 110 minus 2, red 10, 40, 70, 100 minus 3.
  const float expected = 29 + 2 * 59 + 3 * 89 + 4 * 119 + 5 * 18 + 6 * 48 + 7 * 78 + 8 * 108 +
                         9 * 7 + 10 * 37 + 11 * 67 + 12 * 97;
  EXPECT_THAT(predictor.PredictFile(file), ElementsAre(expected, expected));
  const uint8_t rgb[] = {10, 20, 30, 40, 50, 60, 255, 70, 80, 90, 100, 110, 120, 255};
  PredictorImage image;
  image.pixels = rgb;
  image.height = image.width = 2;
  image.row_bytes = 7;
  EXPECT_THAT(predictor.Predict(image), ElementsAre(expected, expected));
  const uint8_t bgr[] = {30, 20, 10, 60, 50, 40, 90, 80, 70, 120, 110, 100};
  image.pixels = bgr;
  image.order = PredictorImage::Order::kBgr;
  image.row_bytes = 0;
  EXPECT_THAT(predictor.Predict(image), ElementsAre(expected, expected));
}

TEST_F(PredictorTest, ThrowsOneKindOfErrorAndPrintsNothing) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  PredictorOptions options = Options();
  options.weights = {"none.caffemodel"};
  std::optional<PredictorError> error = Refusal([&] { Predictor{options}; });
  EXPECT_EQ(error->code(), 66);
  EXPECT_THAT(error->what(), HasSubstr("none.caffemodel"));
  error = Refusal([&] { Predictor{PredictorOptions()}; });
  EXPECT_EQ(error->code(), 64);
  EXPECT_THAT(error->what(), HasSubstr("neither a model nor a run"));
  options = Options();
  options.run = "run";
  EXPECT_THAT(Refusal([&] { Predictor{options}; })->what(), HasSubstr("both a model and a run"));
  options = Options();
  options.weights.clear();
  error = Refusal([&] { Predictor{options}; });
  EXPECT_EQ(error->code(), 64);
  EXPECT_THAT(error->what(), AllOf(HasSubstr("deploy.prototxt"), HasSubstr("names no weights")));
  options = Options();
  options.batch = 0;
  EXPECT_EQ(Refusal([&] { Predictor{options}; })->code(), 64);
  options = Options();
  options.output = "none";
  EXPECT_EQ(Refusal([&] { Predictor{options}; })->code(), 64);
  Predictor predictor(Options());
  EXPECT_EQ(Refusal([&] { predictor.PredictFile("none.png"); })->code(), 66);
  const Image deep = {1, 28, 28, {}, std::vector<float>(28 * 28, 0.5f)};  // 16 bits per channel
  EXPECT_THAT(predictor.PredictFile(digits_.folder().Write("deep.png", EncodeImage(deep, "png"))),
              SizeIs(10));
  PredictorImage image;
  EXPECT_THAT(Refusal([&] { predictor.Predict(image); })->what(), HasSubstr("0x0 pixels"));
  image.height = image.width = 2;
  EXPECT_THAT(Refusal([&] { predictor.Predict(image); })->what(), HasSubstr("is null"));
  const uint8_t pixels[4] = {};
  image.pixels = pixels;
  image.channels = 2;
  EXPECT_THAT(Refusal([&] { predictor.Predict(image); })->what(), HasSubstr("2 channels"));
  image.channels = 1;
  image.row_bytes = 1;
  EXPECT_EQ(Refusal([&] { predictor.Predict(image); })->code(), 64);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(PredictorTest, ACommentThatCannotBeUsedConcernsImagesAlone) {
  const std::string path = digits_.WriteImages(1)[0];
  PredictorOptions options = Options();
  options.model = digits_.folder().Write(
      "unknown.prototxt",
      Join("# To prepare images as its training did: trainer predict --resize=H,W",
           kUnknownSizeNote, "\n", ReadText(options.model)));
  Predictor predictor(options);
  const std::vector<float> values(28 * 28, 0.5f);
  EXPECT_EQ(predictor.Run(values.data(), 1), Predictor(Options()).Run(values.data(), 1));
  EXPECT_EQ(Refusal([&] { predictor.PredictFile(path); })->code(), 64);
}

TEST_F(PredictorTest, AnOutputHasTheRowsOfTheLastPass) {
  PredictorOptions options = Options();
  options.model = digits_.folder().Write("filter.prototxt", R"(
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 1 dim: 1 dim: 28 dim: 28 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 10 bias_term: false } }
layer { name: "sum" type: "Reduction" bottom: "ip" top: "sum" reduction_param { axis: 1 } }
layer { name: "filter" type: "Filter" bottom: "ip" bottom: "sum" top: "kept" }
)");
  options.weights = {digits_.folder() / "filter.caffemodel"};
  caffe::NetParameter model = ReadModel(Options().weights[0]);
  for (caffe::LayerParameter& layer : *model.mutable_layer()) {
    if (layer.name() == "ip") layer.mutable_blobs()->DeleteSubrange(1, 1);  // the bias
  }
  WriteModel(options.weights[0], model);
  Predictor predictor(options);
  const std::vector<float> dark(28 * 28, 0.0f), bright(28 * 28, 1.0f);
  EXPECT_THAT(predictor.Run(bright.data(), 1), SizeIs(10));
  EXPECT_THAT(predictor.Run(dark.data(), 1), IsEmpty());
  options.batch = 2;
  const std::optional<PredictorError> error = Refusal([&] { Predictor{options}; });
  EXPECT_EQ(error->code(), 78);
  EXPECT_THAT(error->what(), HasSubstr("set PredictorOptions::batch to 1"));
}

TEST_F(PredictorTest, MissingWeightsAreAnError) {
  PredictorOptions options = Options();
  options.model = digits_.folder().Write(
      "more.prototxt", ReadText(options.model) +
                           R"(layer { name: "more" type: "InnerProduct" bottom: "prob" top: "more"
  inner_product_param { num_output: 2 } })");
  const std::optional<PredictorError> error = Refusal([&] { Predictor{options}; });
  EXPECT_EQ(error->code(), 65);
  EXPECT_THAT(error->what(),
              AllOf(HasSubstr("net.caffemodel"),
                    HasSubstr("the weights of 1 layer of the net are missing: more")));
}

TEST_F(PredictorTest, LoadsAModelAsOneFile) {
  caffe::BlobProto mean;
  WriteBlob(std::vector<int64_t>{1, 1, 28, 28}, std::vector<float>(28 * 28, 5), &mean);
  const std::string deploy = digits_.folder().Write(
      "mean.prototxt", Join("# To prepare images as its training did: trainer predict --mean=",
                            digits_.folder().Write("m", mean.SerializeAsString()),
                            " --scale=0.00390625\n", ReadText(Options().model)));
  std::string names;
  for (int i = 0; i < 10; ++i) names += Join("digit ", i, "\n");
  PackOptions pack;
  pack.target.model.file = deploy;
  pack.target.weights = Options().weights;
  pack.labels = digits_.folder().Write("names.txt", names);
  pack.out = digits_.folder() / "digits.trainer";
  WriteModelPack(pack);
  const std::string path = digits_.WriteImages(1)[0];
  PredictorOptions options = Options();
  options.model = deploy;
  Predictor parts(options);
  options.model = pack.out;
  options.weights.clear();
  Predictor packed(options);
  EXPECT_FALSE(IsMemoryFile(pack.out + "/weights.safetensors"));
  Predictor again(options);  // opens the same file
  EXPECT_EQ(packed.PredictFile(path), parts.PredictFile(path));
  EXPECT_EQ(again.PredictFile(path), parts.PredictFile(path));
  EXPECT_NE(packed.PredictFile(path), Predictor(Options()).PredictFile(path));
  EXPECT_THAT(packed.labels(), SizeIs(10));
  EXPECT_EQ(packed.labels().at(3), "digit 3");
  WriteText(pack.out, ReadText(pack.out).substr(0, 5000));
  const std::optional<PredictorError> error = Refusal([&] { Predictor{options}; });
  EXPECT_EQ(error->code(), 65);
  EXPECT_THAT(error->what(), AllOf(HasSubstr("digits.trainer"), HasSubstr("truncated")));
}

TEST_F(PredictorTest, WorksOnSeveralThreads) {
  const std::vector<std::string> paths = digits_.WriteImages(2);
  const std::vector<std::vector<float>> expected = Expected(paths);
  std::vector<std::vector<float>> found(2);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] { found[i] = Predictor(Options()).PredictFile(paths[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace trainer
