// An image learns the style of one image and the content of another.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "small_run.h"
#include "support/error_of.h"
#include "support/golden.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/image/image.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

std::string Picture(const std::string& name, const std::string& fields, int lr_mult) {
  return Join("layer { name: '", name, "' type: 'Parameter' top: '", name,
              "' param { lr_mult: ", lr_mult, " } parameter_param { ", fields, " } }\n");
}

std::string Branch(const std::string& name) {
  return Join("layer { name: 'conv_", name, "' type: 'Convolution' bottom: '", name,
              "' top: 'conv_", name,
              "' param { name: 'w' lr_mult: 0 } param { name: 'b' lr_mult: 0 } "
              "convolution_param { num_output: 5 kernel_size: 3 pad: 1 weight_filler { type: "
              "'xavier' } } }\nlayer { name: 'relu_",
              name, "' type: 'ReLU' bottom: 'conv_", name, "' top: 'conv_", name, "' }\n");
}

const std::string kShape = "shape { dim: 1 dim: 3 dim: 7 dim: 6 } ";
const std::string kLosses = R"(
layer { name: "gram" type: "Gram" bottom: "conv_picture" top: "gram" }
layer { name: "gram_style" type: "Gram" bottom: "conv_style" top: "gram_style" }
layer { name: "style_loss" type: "EuclideanLoss" bottom: "gram" bottom: "gram_style"
        top: "style_loss" loss_weight: 40 }
layer { name: "content_loss" type: "EuclideanLoss" bottom: "conv_picture" bottom: "conv_content"
        top: "content_loss" loss_weight: 0.5 }
layer { name: "variation" type: "TotalVariationLoss" bottom: "picture" top: "variation"
        loss_weight: 0.25 }
)";

std::string StyleNet(const std::string& picture, const std::string& content,
                     const std::string& style) {
  return Picture("picture", picture, 1) + Picture("content", content, 0) +
         Picture("style", style, 0) + Branch("picture") + Branch("content") + Branch("style") +
         kLosses;
}

const std::string kNeuralStyleFields =
    "type: \"LBFGS\" base_lr: 1 lr_policy: \"fixed\" display: 1 ";

TEST(NeuralStyleTest, GoldenValuesOfTheLossesAndThePicturesGradient) {
  const GoldenCase golden = ReadGolden("nets/style.txt").at(0);
  SmallRun run(kNeuralStyleFields + "max_iter: 1 ", StyleNet(kShape, kShape, kShape));
  Net& net = run.solver->train_net();
  ParamStore& params = net.store();
  const std::pair<const char*, const char*> values[] = {{"picture:0", "picture"},
                                                        {"content:0", "content_picture"},
                                                        {"style:0", "style_picture"},
                                                        {"w", "weight"},
                                                        {"b", "bias"}};
  for (const auto& [param, tensor] : values) {
    params.Import(*params.Find(param), golden.Tensor(tensor).values, params.Find(param)->weight);
  }
  params.ClearGradients();
  const float loss = net.Forward();
  net.Backward();
  EXPECT_NEAR(loss, golden.Number("loss"), 1e-4 * golden.Number("loss"));
  std::map<std::string, float> losses;
  for (const NetOutput& output : net.outputs()) {
    net.ReadNchw(output.value, {&losses[output.name], 1});
  }
  for (const auto& [output, number] : {std::pair("style_loss", "style"),
                                       {"content_loss", "content"},
                                       {"variation", "variation"}}) {
    const double expected = golden.Number(number);
    EXPECT_NEAR(losses[output], expected, 1e-5 * std::max(1.0, expected)) << output;
  }
  const Param& picture = *params.Find("picture:0");
  std::vector<float> gradient(static_cast<size_t>(picture.count()));
  params.Export(picture, picture.grad, gradient);
  const std::vector<float>& expected = golden.Tensor("dpicture").values;
  for (size_t i = 0; i < gradient.size(); ++i) {
    EXPECT_NEAR(gradient[i], expected[i], 1e-4 * std::max(1.0f, std::fabs(expected[i]))) << i;
  }
}

// Provides 8 x 6 pictures as PNG files in a folder.
class PicturesTest : public testing::Test {
 protected:
  PicturesTest() {
    for (const auto& [name, step] : {std::pair("content.png", 5), {"style.png", 11}}) {
      Image image{3, 8, 6, {}};
      for (int i = 0; i < 3 * 8 * 6; ++i) {
        image.pixels.push_back(static_cast<uint8_t>(i * step % 256));
      }
      WriteText(folder_ / name, EncodeImage(image, "png"));
    }
  }
  std::string Net(const std::string& picture_fields = "") const {
    const std::string means = "mean_value: 100 mean_value: 110 mean_value: 120 ";
    const std::string content = "image: '" + (folder_ / "content.png") + "' " + means;
    return StyleNet(content + picture_fields, content,
                    "image: '" + (folder_ / "style.png") + "' " + means +
                        "shape { dim: 1 dim: 3 dim: 16 dim: 12 }");
  }
  std::string File(const std::string& name) const { return folder_ / name; }

 private:
  TempFolder folder_;
};

TEST_F(PicturesTest, ThePictureStartsAsAnImageAndIsWrittenAtEverySnapshot) {
  SmallRun run(kNeuralStyleFields + "max_iter: 6 snapshot: 3 ", Net("picture: 'out_%d.png'"));
  Image start, written;
  DecodeImage(ReadText(File("content.png")), ColorMode::kColor, {}, "start", &start);
  const std::vector<float> weights = run.Weights();
  EXPECT_EQ(weights[0], static_cast<float>(start.pixels[0]) - 100);
  EXPECT_EQ(weights[2 * 48], static_cast<float>(start.pixels[2 * 48]) - 120);
  run.Solve();
  EXPECT_LT(run.observer.losses.back(), run.observer.losses.front());
  EXPECT_TRUE(Exists(run.PathOf("out_3.png")));
  DecodeImage(ReadText(run.PathOf("out_6.png")), ColorMode::kColor, {}, "picture", &written);
  EXPECT_EQ(written.height, 8);
  EXPECT_EQ(written.width, 6);
  const std::vector<float> learned = run.Weights();
  for (size_t i = 0; i < written.pixels.size(); ++i) {
    const float pixel = learned[i] + 100 + 10 * static_cast<float>(i / 48);
    EXPECT_NEAR(written.pixels[i], std::clamp(pixel, 0.0f, 255.0f), 0.51f) << i;
  }
}

TEST_F(PicturesTest, ResumesBitForBit) {
  const std::string picture = "picture: 'out_%d.png'";
  SmallRun whole(kNeuralStyleFields + "max_iter: 8 ", Net(picture));
  whole.Solve();
  SmallRun first(kNeuralStyleFields + "max_iter: 4 ", Net(picture));
  first.Solve();
  SolverOptions options;
  options.snapshot = first.PathOf("s_iter_4.solverstate");
  SmallRun second(kNeuralStyleFields + "max_iter: 8 ", Net(picture), options, first.folder_path);
  second.Solve();
  EXPECT_THAT(second.Weights(), ElementsAreArray(whole.Weights()));
}

// HDF5Output follows the same rule.
TEST_F(PicturesTest, ReplacesNoFileOfAnotherRun) {
  const std::string fields = kNeuralStyleFields + "max_iter: 2 ";
  TempFolder folder;
  const std::tuple<const char*, const char*, const char*> names[] = {
      {"out_%d.png", "out_2.png", "out_2_2.png"}, {"out.png", "out.png", "out_2.png"}};
  for (const auto& [name, there, next] : names) {
    WriteText(folder / there, "precious");
    const std::string net = Net(Join("picture: '", name, "'"));
    const auto [code, message] = ErrorOf([&] { SmallRun(fields, net, {}, folder.path()); });
    EXPECT_EQ(code, ErrorCode::kCannotCreate);
    EXPECT_THAT(message, HasSubstr(Join(there,
                                        "' already exists, and the run does not overwrite "
                                        "files")));
    std::filesystem::remove(folder / there);
    SmallRun(fields, net, {}, folder.path()).Solve();
    WriteText(folder / there, "precious");
    SolverOptions options;
    options.snapshot = folder / "s_iter_2.solverstate";
    SmallRun again(kNeuralStyleFields + "max_iter: 2 snapshot_after_train: true ", net, options,
                   folder.path());
    again.solver->Snapshot();
    EXPECT_EQ(ReadText(folder / there), "precious");
    EXPECT_TRUE(Exists(folder / next));
    for (const std::string& file : folder.Names()) std::filesystem::remove(folder / file);
  }
}

TEST_F(PicturesTest, RefusesPicturesThatCannotBe) {
  const auto refusal = [&](const std::string& fields) {
    return ErrorOf([&] { SmallRun(kNeuralStyleFields + "max_iter: 2 ", Net(fields)); });
  };
  EXPECT_THAT(refusal("picture: 'x.jpg'").second, HasSubstr("the file name must end in .png"));
  for (const std::string& elsewhere : {std::string("/no/such/folder/x.png"), File("style.png")}) {
    const auto [code, message] = refusal("picture: '" + elsewhere + "'");
    EXPECT_EQ(code, ErrorCode::kCannotCreate);
    EXPECT_THAT(message, HasSubstr("but images are written to the folder of the snapshots only"));
  }
  EXPECT_THAT(refusal("shape { dim: 2 dim: 3 dim: 8 dim: 6 }").second,
              HasSubstr("an image must have shape (1, 1, H, W) or (1, 3, H, W)"));
  EXPECT_THAT(refusal("mean_value: 1").second, HasSubstr("mean_value is given 4 times"));
  EXPECT_THAT(refusal("filler { value: 1 }").second, HasSubstr("filler and image are both given"));
}

}  // namespace
}  // namespace trainer
