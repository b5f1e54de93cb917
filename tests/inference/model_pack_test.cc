#include "trainer/inference/pack/model_pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "inference/digits_net.h"
#include "support/error_of.h"
#include "support/protobuf_maps.h"
#include "trainer/base/file/file.h"
#include "trainer/checkpoint/tensor_model.h"
#include "trainer/config/blob.h"
#include "trainer/inference/pack/pack_writer.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/inference/predict/classifier.h"
#include "trainer/inference/predict/table_prediction.h"
#include "trainer/monitor/run_card.h"
#include "trainer/storage/sealed_tar.h"
#include "trainer/storage/table_format.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ModelPackTest : public testing::Test {
 protected:
  ModelPackTest() {
    std::string names;
    for (int i = 0; i < 10; ++i) names += Join("digit ", i, "\n");
    labels_ = digits_.folder().Write("names.txt", names);
    options_.target.model.file = digits_.folder() / "deploy.prototxt";
    options_.target.weights = {digits_.weights()};
    options_.labels = labels_;
    options_.images.scale = "0.00390625";
    options_.out = pack_;
  }

  // Returns the scores of the first digits.
  static std::vector<std::vector<float>> ScoresOf(const PredictionTarget& target,
                                                  const ImageInputFlags& flags,
                                                  const std::vector<std::string>& images) {
    const std::unique_ptr<Device> device = MakeCpuDevice(1);
    InferenceNet net(target.net, *device, {.state = target.state});
    Classifier classifier(net.net(), "", ResolvePreprocessOptions(flags, target.net));
    net.LoadWeights(target.weights);
    ImagePaths paths(images, "");
    std::vector<std::vector<float>> scores;
    classifier.Run(paths, 1, [&](const ImageScores& image) { scores.push_back(image.scores); });
    return scores;
  }
  std::string ErrorFor(const std::string& bytes) const {
    const auto [code, message] =
        ErrorOf([&] { OpenPack(digits_.folder().Write("changed.trainer", bytes)); });
    EXPECT_EQ(code, ErrorCode::kData);
    return message;
  }

  DigitsNet digits_;
  std::string labels_, pack_ = digits_.folder() / "small.trainer";
  PackOptions options_;
};

TEST_F(ModelPackTest, PredictsAsItsPartsDo) {
  EXPECT_THAT(WriteModelPack(options_), HasSubstr("small.trainer: 40960 bytes"));
  const std::vector<std::string> images = digits_.WriteImages(4);
  const PredictionTarget parts = ResolvePredictionTarget(options_.target);
  const PredictionTarget packed = ResolvePredictionTarget({.model = {.file = pack_}});
  EXPECT_EQ(ScoresOf(packed, {}, images), ScoresOf(parts, options_.images, images));
  EXPECT_THAT(ReadClassNames(packed.class_names, 10), testing::Contains("digit 3"));
  EXPECT_EQ(packed.net.file, pack_ + "/deploy.prototxt");
  EXPECT_FALSE(std::filesystem::exists(packed.net.file));
}

TEST_F(ModelPackTest, HasEqualBytesForEqualModels) {
  WriteModelPack(options_);
  options_.out = digits_.folder() / "again.trainer";
  WriteModelPack(options_);
  EXPECT_EQ(ReadText(pack_), ReadText(options_.out));
}

TEST_F(ModelPackTest, KeepsEachBitOfTheWeights) {
  WriteModelPack(options_);
  const caffe::NetParameter packed = ReadModel(OpenPack(pack_).weights);
  const caffe::NetParameter original = ReadModel(digits_.weights());
  ASSERT_EQ(packed.layer_size(), 1);
  for (const caffe::LayerParameter& layer : original.layer()) {
    if (layer.name() != "ip") continue;
    EXPECT_TRUE(std::ranges::equal(layer.blobs(0).data(), packed.layer(0).blobs(0).data()));
    EXPECT_TRUE(std::ranges::equal(layer.blobs(1).data(), packed.layer(0).blobs(1).data()));
  }
}

TEST_F(ModelPackTest, HasTheMeanImageAndPrefersItToOneInTheFolder) {
  caffe::BlobProto mean;
  WriteBlob(std::vector<int64_t>{1, 1, 28, 28}, std::vector<float>(28 * 28, 5), &mean);
  options_.images.mean = digits_.folder().Write("m", mean.SerializeAsString());
  WriteModelPack(options_);
  const NetSpec net = LoadModel({.file = pack_});
  EXPECT_THAT(net.text->content,
              testing::StartsWith("# To prepare images as its training did: trainer predict "
                                  "--mean=mean.binaryproto --scale=0.00390625\n"));
  const PreprocessOptions options = ResolvePreprocessOptions({}, net);
  EXPECT_EQ(options.mean_file, pack_ + "/mean.binaryproto");
  EXPECT_EQ(ReadFile(options.mean_file, 1 << 20), mean.SerializeAsString());
  EXPECT_EQ(ResolvePreprocessOptions({.mean_value = "7"}, net).mean_file, "");
}

TEST_F(ModelPackTest, HasTheFormatOfItsTables) {
  TRAINER_READS_JSON();
  const std::string set = digits_.folder() / "train.h5";
  TableFormat format;
  format.inputs = {{.name = "width", .categories = {}}};
  format.labels = {{.name = "class", .categories = {}}};
  WriteTableFormat(TableFormatPath(set), format);
  options_.labels.clear();
  options_.target.model.file = digits_.folder().Write(
      "table.prototxt", Join("# ", kTableComment, set, "\n", ReadText(options_.target.model.file)));
  WriteModelPack(options_);
  const std::string like = ResolveLike("", LoadModel({.file = pack_}));
  EXPECT_EQ(like, pack_ + "/table.json");
  EXPECT_EQ(ReadTableFormat(like).inputs.at(0).name, "width");
}

TEST_F(ModelPackTest, HasTheLayersOfItsStage) {
  options_.target.model.file = digits_.folder().Write(
      "stages.prototxt", ReadText(options_.target.model.file) +
                             "layer { name: 'double' type: 'Power' bottom: 'prob' top: 'double' "
                             "power_param { scale: 2 } include { stage: 'two' } }");
  WriteModelPack(options_);
  EXPECT_EQ(LoadModel({.file = pack_}).layers.size(), 3u);
  options_.target.model.state.stages = {"two"};
  WriteModelPack(options_);
  const NetSpec net = LoadModel({.file = pack_});
  ASSERT_EQ(net.layers.size(), 4u);
  EXPECT_EQ(net.layers[3].proto().include_size(), 0);
  EXPECT_FALSE(net.layers[3].proto().has_phase());
}

TEST_F(ModelPackTest, StandsForTheWeightsAlone) {
  WriteModelPack(options_);
  NetSource source{.file = digits_.folder() / "deploy.prototxt"};
  std::vector<std::string> weights = {pack_};
  UsePack(&source, &weights);
  EXPECT_THAT(weights, ElementsAre(pack_ + "/weights.safetensors"));
  EXPECT_EQ(source.file, digits_.folder() / "deploy.prototxt");
  weights.clear();
  source.file = pack_;
  std::string labels = "mine";
  UsePack(&source, &weights, &labels);
  EXPECT_THAT(weights, ElementsAre(pack_ + "/weights.safetensors"));
  EXPECT_EQ(labels, "mine");
  weights = {digits_.weights()};
  source.file = pack_;
  UsePack(&source, &weights);
  EXPECT_THAT(weights, ElementsAre(digits_.weights()));
}

TEST_F(ModelPackTest, IsToldByItsNameOrItsFirstBytes) {
  WriteModelPack(options_);
  std::filesystem::rename(pack_, digits_.folder() / "pack");
  EXPECT_TRUE(IsPack(digits_.folder() / "pack"));
  EXPECT_TRUE(IsPack("missing.trainer"));
  EXPECT_FALSE(IsPack(digits_.folder() / "deploy.prototxt"));
  EXPECT_FALSE(IsPack(digits_.folder().path()));
  EXPECT_FALSE(IsPack(digits_.folder() / "missing"));
  EXPECT_EQ(ErrorOf([] { LoadModel({.file = "missing.trainer"}); }).first, ErrorCode::kNoInput);
}

TEST_F(ModelPackTest, RefusesAChangedFile) {
  WriteModelPack(options_);
  const std::string bytes = ReadText(pack_);
  std::string changed = bytes;
  const size_t at = bytes.find("num_output");
  ASSERT_NE(at, std::string::npos);
  changed[at + 12] = '9';
  EXPECT_THAT(ErrorFor(changed),
              HasSubstr("changed.trainer: its checksum does not match: the file was changed or "
                        "damaged; copy the file again"));
  EXPECT_THAT(ErrorFor(bytes.substr(0, bytes.size() / 2)), HasSubstr("truncated"));
  EXPECT_THAT(ErrorFor("name: \"LeNet\"\n"), HasSubstr("too short for a tar archive"));
}

TEST_F(ModelPackTest, RefusesATarFileOfOtherMembers) {
  const auto error = [&](const std::vector<TarMember>& members) {
    WriteSealedTar(pack_, members);
    return ErrorOf([&] { OpenPack(pack_); }).second;
  };
  EXPECT_THAT(error({{"card.json", "{}"}, {"deploy.prototxt", ""}}),
              HasSubstr("this is not a pack of 'trainer pack': it has no file "
                        "'weights.safetensors'"));
  EXPECT_THAT(error({{"card.json", "{}"}, {"tuned.bin", ""}}),
              HasSubstr("the pack has a file 'tuned.bin', which this version does not know"));
}

TEST_F(ModelPackTest, RefusesWhatIsNoWholeModel) {
  options_.labels = digits_.folder().Write("two.txt", "a\nb\n");
  EXPECT_THAT(ErrorOf([&] { WriteModelPack(options_); }).second,
              HasSubstr("two.txt: the file has 2 names for 10 classes"));
  options_.labels = labels_;
  const std::string net = ReadText(digits_.folder() / "deploy.prototxt") +
                          "layer { name: 'more' type: 'InnerProduct' bottom: 'prob' top: 'more' "
                          "inner_product_param { num_output: 2 } }";
  options_.target.model.file = digits_.folder().Write("more.prototxt", net);
  options_.labels.clear();
  const auto [code, message] = ErrorOf([&] { WriteModelPack(options_); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(message, HasSubstr("the weights of 1 layer of the net are missing: more"));
  digits_.Load();
  options_.target.model.file = digits_.folder() / "net.prototxt";
  EXPECT_THAT(ErrorOf([&] { WriteModelPack(options_); }).second,
              HasSubstr("net.prototxt: this net reads its own data, as for training"));
  EXPECT_FALSE(std::filesystem::exists(pack_));
}

TEST_F(ModelPackTest, HasACard) {
  TRAINER_READS_JSON();
  WriteModelPack(options_);
  const std::string card = PackCardText(pack_);
  EXPECT_THAT(card, HasSubstr("net         small, 7850 parameters\n"));
  EXPECT_THAT(card, HasSubstr("input       data 3x1x28x28\n"));
  EXPECT_THAT(card, HasSubstr("output      prob 3x10\n"));
  EXPECT_THAT(card, HasSubstr("trainer predict --scale=0.00390625\n"));
  EXPECT_THAT(card, HasSubstr("classes     10 with names\n"));
  EXPECT_THAT(card, HasSubstr(Join("weights     ", digits_.weights(), ", ")));
  EXPECT_THAT(card, HasSubstr("file        weights.safetensors, "));
  EXPECT_THAT(PackCardJson(pack_), HasSubstr("\"pack\": 1"));
  const std::vector<TarMember> members = {
      {kPackCardName, "[]"}, {kPackNetName, ""}, {kPackWeightsName, ""}};
  WriteSealedTar(pack_, members);
  EXPECT_THAT(ErrorOf([&] { PackCardText(pack_); }).second,
              HasSubstr("small.trainer/card.json: this is not the card of a pack"));
}

TEST_F(ModelPackTest, PacksARunWithItsCard) {
  TRAINER_READS_JSON();
  const std::string run = digits_.folder() / "run";
  std::filesystem::create_directory(run);
  WriteText(run + "/solver.prototxt", "net_param { " + digits_.text +
                                          "} test_iter: 3 test_interval: 10 base_lr: 1 "
                                          "lr_policy: 'fixed' max_iter: 20");
  WriteText(run + "/metrics.jsonl",
            R"({"event": "start", "iter": 0}
{"event": "snapshot", "iter": 20, "model": ")" +
                digits_.weights() + "\"}\n");
  RunCard card;
  card.state = "finished";
  card.max_iter = 20;
  card.test = {{"accuracy", 0.5}};
  card.starts.resize(1);
  card.starts[0].info.command = {"trainer", "train", "--solver=s.prototxt"};
  card.starts[0].last_iter = 20;
  card.starts[0].data = {{"train", "data/train_lmdb", 40, "abc", true, ""}};
  WriteText(run + "/card.json", ToJson(card).ToString());
  WriteModelPack({.target = {.run = run}, .out = pack_});
  const std::string text = PackCardText(pack_);
  EXPECT_THAT(text, HasSubstr("input       data 1x1x28x28\n"));
  EXPECT_THAT(text, HasSubstr("trained     finished at iteration 20 of 20, 0 records\n"));
  EXPECT_THAT(text, HasSubstr("command     trainer train --solver=s.prototxt\n"));
  EXPECT_THAT(text, HasSubstr("last test   accuracy 0.5 at iteration 0\n"));
  EXPECT_THAT(text, HasSubstr("data        train: data/train_lmdb, 40 records, content abc\n"));
  EXPECT_EQ(ResolvePreprocessOptions({}, LoadModel({.file = pack_})).scale, 0.00390625f);
}

}  // namespace
}  // namespace trainer
