// The nets of models/ can be planned: their layers fit together, they have as many weights as their
// papers say, and each deploy net takes all of its weights from the training net.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "support/net_text.h"
#include "support/source_folder.h"
#include "support/test_device.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/net/learning.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;

struct Model {
  const char* folder;
  std::vector<int64_t> image;   // (C, H, W), or (L) of a text, from the data layer
  int64_t weights;              // of the deploy net, without the statistics of BatchNorm
  int64_t more_in_training;     // of auxiliary classifiers
  std::vector<int64_t> output;  // the deploy net's only output
  const char* form = "";        // suffix of the file names: "_torchvision"
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.folder << model.form; }

const Model kModels[] = {
    {"lenet", {1, 28, 28}, 431080, 0, {1, 10}},
    {"cifar10_quick", {3, 32, 32}, 145578, 0, {1, 10}},
    {"cifar10_full", {3, 32, 32}, 89578, 0, {1, 10}},
    {"resnet18_cifar", {3, 32, 32}, 11173962, 0, {1, 10}},
    {"autoencoder", {1, 28, 28}, 2837314, 0, {1, 784}},
    {"siamese", {2, 28, 28}, 431102, 0, {1, 2}},
    {"mnist_cnn", {1, 28, 28}, 3274634, 0, {1, 10}},
    {"lstm", {1, 28, 28}, 24458, 0, {1, 10}},
    {"vit_tiny", {3, 32, 32}, 5362378, 0, {1, 10}},
    {"char_transformer", {128}, 875520, 0, {1, 128, 256}},
    {"alexnet", {3, 227, 227}, 60965224, 0, {10, 1000}},
    {"caffenet", {3, 227, 227}, 60965224, 0, {10, 1000}},
    {"googlenet", {3, 224, 224}, 6998552, 6379728, {10, 1000}},
    // The common figure is 25,557,032; the published Caffe net has a bias in its first convolution.
    {"resnet50", {3, 224, 224}, 25557032 + 64, 0, {1, 1000}},
    // The common figure is 3,504,872; the published Caffe net also expands in its first block, by a
    // factor of 1: 32 * 32 weights, 32 scales and 32 biases.
    {"mobilenet_v2", {3, 224, 224}, 3504872 + 1088, 0, {1, 1000, 1, 1}},
    // The numbers of torchvision 0.29.
    {"resnet18", {3, 224, 224}, 11689512, 0, {1, 1000}},
    {"resnet50", {3, 224, 224}, 25557032, 0, {1, 1000}, "_torchvision"},
    {"mobilenet_v2", {3, 224, 224}, 3504872, 0, {1, 1000}, "_torchvision"},
    {"convnext_tiny", {3, 224, 224}, 28589128, 0, {1, 1000}},
    {"vit_tiny", {3, 32, 32}, 5362762, 0, {1, 10}, "_torchvision"},
};

// Returns the net with one image instead of a database, one text with its labels instead of HDF5
// files, and marks (28, 1) for the LSTM's one sequence.
NetSpec LoadWithoutData(const std::string& path, const std::vector<int64_t>& image) {
  NetSpec net = LoadNet(path);
  for (LayerSpec& layer : net.layers) {
    caffe::LayerParameter& proto = layer.mutable_proto();
    const bool is_text = layer.type() == "HDF5Data";
    if (layer.type() != "Data" && layer.type() != "DummyData" && !is_text) continue;
    for (caffe::BlobShape& marks : *proto.mutable_dummy_data_param()->mutable_shape()) {
      marks.set_dim(1, 1);
    }
    if (layer.type() == "DummyData") continue;
    proto.set_type("DummyData");
    proto.clear_data_param();
    proto.clear_hdf5_data_param();
    proto.clear_transform_param();
    for (int i = 0; i < proto.top_size(); ++i) {
      caffe::BlobShape& shape = *proto.mutable_dummy_data_param()->add_shape();
      shape.add_dim(1);
      for (const int64_t dim : image) {
        if (i == 0 || is_text) shape.add_dim(dim);
      }
    }
  }
  return net;
}

int64_t CountWeights(const Net& net) {
  std::map<std::string, std::string> types;
  for (const Node& node : net.graph().nodes) types[node.spec.name()] = node.spec.type();
  int64_t count = 0;
  for (const Param* param : net.params()) {
    if (types[param->layer] != "BatchNorm") count += param->count();
  }
  return count;
}

class ModelsTest : public testing::TestWithParam<Model> {
 protected:
  std::unique_ptr<Net> Make(const NetSpec& spec, caffe::Phase phase, bool training) {
    NetOptions options;
    options.state = StateOf(phase, 0, {"test-on-test"});
    options.training = training;
    options.log = false;
    return std::make_unique<Net>(spec, options, *device_, params_);
  }

  std::string folder_ = Join(SourceFolder(), "/models/", GetParam().folder, "/");
  std::unique_ptr<Device> device_ = MakeTestDevice(1);
  ParamStore params_{*device_};
};
INSTANTIATE_TEST_SUITE_P(Of, ModelsTest, testing::ValuesIn(kModels),
                         [](const auto& one) { return Join(one.param.folder, one.param.form); });

TEST_P(ModelsTest, PlansWithAsManyWeightsAsPublished) {
  TRAINER_CPU_ONLY("no kernel runs");
  const Model& model = GetParam();
  const NetSpec train_spec =
      LoadWithoutData(folder_ + "train_test" + model.form + ".prototxt", model.image);
  const auto train = Make(train_spec, caffe::TRAIN, true);
  EXPECT_EQ(CountWeights(*train), model.weights + model.more_in_training);
  EXPECT_TRUE(HasLoss(*train));
  EXPECT_TRUE(UntrainedParams(*train).empty());
  const size_t bytes = params_.WeightBytes();
  const auto test = Make(train_spec, caffe::TEST, false);
  const NetSpec deploy_spec = LoadNet(folder_ + "deploy" + model.form + ".prototxt");
  const auto deploy = Make(deploy_spec, caffe::TEST, false);
  EXPECT_EQ(CountWeights(*deploy), model.weights);
  EXPECT_EQ(params_.WeightBytes(), bytes) << "a test or deploy net has weights of its own";
  ASSERT_EQ(deploy->outputs().size(), 1u);
  EXPECT_THAT(deploy->outputs()[0].value.shape.dims(), ElementsAreArray(model.output));
}

// Returns the first word of each line, without the shape in brackets: "conv1.0".
std::set<std::string> BlobsOfTable(const std::string& path) {
  std::istringstream lines(ReadFile(path, 1 << 20));
  std::set<std::string> blobs;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) blobs.insert(line.substr(0, line.find_first_of(" [")));
  }
  return blobs;
}

TEST_P(ModelsTest, ATableOfNamesHasEveryBlob) {
  TRAINER_CPU_ONLY("no kernel runs");
  const Model& model = GetParam();
  const bool is_torchvisions = std::string(model.form) == "_torchvision" ||
                               std::string(model.folder) == "resnet18" ||
                               std::string(model.folder) == "convnext_tiny";
  if (!is_torchvisions) GTEST_SKIP() << "the net has no table";
  const NetSpec spec = LoadNet(folder_ + "deploy" + model.form + ".prototxt");
  const auto net = Make(spec, caffe::TEST, false);
  std::set<std::string> blobs;
  for (const Param* param : net->params()) blobs.insert(Join(param->layer, ".", param->index));
  EXPECT_EQ(BlobsOfTable(folder_ + "tensor_names.txt"), blobs);
}

}  // namespace
}  // namespace trainer
