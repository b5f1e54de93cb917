#include "trainer/checkpoint/tensor_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "safetensors.h"
#include "small_snapshot.h"
#include "support/error_of.h"
#include "support/temp_folder.h"
#include "tensor_names.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/export_weights.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> DimsOfBlob(const caffe::BlobProto& blob) {
  return {blob.shape().dim().begin(), blob.shape().dim().end()};
}

// Writes the table of names that ReadModel uses, and unsets it at the end.
class NamesTable {
 public:
  NamesTable(const TempFolder& folder, const std::string& text) {
    TensorNamesFile() = folder.Write("map.txt", text);
  }
  ~NamesTable() { TensorNamesFile().clear(); }
};

class TensorModelTest : public testing::Test {
 protected:
  // Writes a safetensors file.
  std::string Write(const std::vector<NamedTensor>& tensors) const {
    std::string bytes;
    EmitSafetensors(tensors, [&](const void* data, size_t count) {
      bytes.append(static_cast<const char*>(data), count);
    });
    return folder_.Write("w.safetensors", bytes);
  }
  // Returns the message of an error with code kData.
  template <class F>
  std::string DataError(const F& f) const {
    const auto [code, message] = ErrorOf(f);
    EXPECT_EQ(code, ErrorCode::kData) << message;
    return message;
  }

  TempFolder folder_;
};

TEST_F(TensorModelTest, EachFormatKeepsEveryBit) {
  auto net = SmallNet(1.0f / 3, 100000);
  for (const char* name : {"w.safetensors", "w.npz", "w.h5"}) {
    SCOPED_TRACE(name);
    WriteModel(folder_ / name, net);
    EXPECT_EQ(IsTensorFile(folder_ / name), name != std::string("w.h5"));
    const caffe::NetParameter read = ReadModel(folder_ / name);
    ASSERT_GE(read.layer_size(), 1);
    EXPECT_EQ(read.layer(0).name(), "ip");
    ASSERT_EQ(read.layer(0).blobs_size(), 2);
    EXPECT_THAT(DimsOfBlob(read.layer(0).blobs(0)), ElementsAre(2, 50000));
    EXPECT_THAT(DimsOfBlob(read.layer(0).blobs(1)), ElementsAre(2));
    EXPECT_TRUE(std::ranges::equal(read.layer(0).blobs(0).data(), net.layer(0).blobs(0).data()));
    EXPECT_TRUE(std::ranges::equal(read.layer(0).blobs(1).data(), net.layer(0).blobs(1).data()));
  }
}

TEST_F(TensorModelTest, OldShapesBecomeThoseOfTheNet) {
  caffe::NetParameter net;
  auto* layer = net.add_layer();
  layer->set_name("fc/8");
  layer->set_type("InnerProduct");
  for (const int rows : {2, 1}) {
    caffe::BlobProto* const blob = layer->add_blobs();
    blob->set_num(1);
    blob->set_channels(1);
    blob->set_height(rows);
    blob->set_width(3);
    for (int i = 0; i < 3 * rows; ++i) blob->add_data(static_cast<float>(i));
  }
  WriteModel(folder_ / "w.safetensors", net);
  const SafetensorsFile file(folder_ / "w.safetensors");
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "fc/8.0");
  EXPECT_THAT(file.tensors()[0].dims, ElementsAre(2, 3));
  EXPECT_THAT(file.tensors()[1].dims, ElementsAre(3));
}

TEST_F(TensorModelTest, RefusesNamesThatAreNoBlobs) {
  const std::vector<float> one = {1};
  const auto error = [&](const std::vector<NamedTensor>& tensors) {
    return DataError([&] { ReadModel(Write(tensors)); });
  };
  EXPECT_THAT(error({{"fc.weight", {1}, one}}),
              HasSubstr("w.safetensors: tensor 'fc.weight' does not have the name of a blob, such "
                        "as 'conv1.0'; if another program wrote the file, give a table of its "
                        "names with --names=FILE"));
  EXPECT_THAT(error({{"fc.1", {1}, one}}), HasSubstr("'fc.1' is there, but 'fc.0' is not"));
  EXPECT_THAT(error({{"fc.01", {1}, one}}), HasSubstr("does not have the name of a blob"));
  EXPECT_THAT(error({}), HasSubstr("the file has no tensors, so it is not a weights file"));
}

TEST_F(TensorModelTest, ATableTranslatesNamesAndShapes) {
  const NamesTable table(folder_,
                         "# a comment\n"
                         "conv 1.0[3,1,1,1]  conv.weight[3,1]  # and one more\r\n"
                         "bn.0 bn.running_mean\n"
                         "\tbn.1 bn.running_var\n"
                         "bn.2 =1\n"
                         "absent.0 head.weight\n");
  const std::vector<float> weight = {1, 2, 3}, mean = {4}, var = {5}, count = {6};
  const caffe::NetParameter net = ReadModel(Write({{"bn.running_mean", {1}, mean},
                                                   {"bn.num_batches_tracked", {1}, count},
                                                   {"bn.running_var", {1}, var},
                                                   {"conv.weight", {3, 1}, weight}}));
  ASSERT_EQ(net.layer_size(), 2);
  EXPECT_EQ(net.layer(0).name(), "conv 1");
  EXPECT_THAT(DimsOfBlob(net.layer(0).blobs(0)), ElementsAre(3, 1, 1, 1));
  EXPECT_THAT(net.layer(0).blobs(0).data(), ElementsAre(1, 2, 3));
  ASSERT_EQ(net.layer(1).blobs_size(), 3);
  EXPECT_THAT(net.layer(1).blobs(0).data(), ElementsAre(4));
  EXPECT_THAT(net.layer(1).blobs(1).data(), ElementsAre(5));
  EXPECT_THAT(net.layer(1).blobs(2).data(), ElementsAre(1));
  EXPECT_THAT(DimsOfBlob(net.layer(1).blobs(2)), ElementsAre(1));
}

TEST_F(TensorModelTest, TheTableNextToTheNetIsUsedForOtherNames) {
  folder_.Write("tensor_names.txt", "fc.0 head.weight\n");
  const std::vector<float> one = {1};
  const std::string file = Write({{"head.weight", {1}, one}});
  EXPECT_EQ(ReadModel(file, folder_ / "deploy.prototxt").layer(0).name(), "fc");
  EXPECT_EQ(ErrorOf([&] { ReadModel(file); }).first, ErrorCode::kData);
  EXPECT_EQ(ReadModel(Write({{"ip.0", {1}, one}}), folder_ / "deploy.prototxt").layer(0).name(),
            "ip");
  folder_.Write("tensor_names.txt", "these are no names\n");
  EXPECT_EQ(ReadModel(Write({{"ip.0", {1}, one}}), folder_ / "deploy.prototxt").layer(0).name(),
            "ip");
}

TEST_F(TensorModelTest, RefusesAFileThatDoesNotFitItsTable) {
  const std::vector<float> one = {1}, two = {1, 2};
  const auto error = [&](const std::string& table, const std::vector<NamedTensor>& tensors) {
    const NamesTable names(folder_, table);
    return DataError([&] { ReadModel(Write(tensors)); });
  };
  EXPECT_THAT(error("a.0 w\na.1 b\n", {{"w", {1}, one}}),
              HasSubstr("map.txt:2: tensor 'b', which is layer 'a', blob 1, is not in "));
  EXPECT_THAT(error("a.0 w[2,1]\n", {{"w", {2}, two}}),
              HasSubstr("map.txt:1: tensor 'w', which is layer 'a', blob 0, has the shape 2 (2) "
                        "in "));
  EXPECT_THAT(error("a.0[3] w\n", {{"w", {2}, two}}), HasSubstr("has 2 numbers in "));
  EXPECT_THAT(error("a.0 w\n", {{"x", {1}, one}}), HasSubstr("has none of the tensors that "));
}

TEST_F(TensorModelTest, RefusesTablesWithTheirLine) {
  const auto error = [&](const std::string& table) {
    const std::string path = folder_.Write("map.txt", table);
    return DataError([&] { ReadTensorNames(path); });
  };
  EXPECT_THAT(error("\na.0\n"), HasSubstr("map.txt:2: 'a.0' does not name a blob and its tensor"));
  EXPECT_THAT(error("a b\n"), HasSubstr("map.txt:1: 'a b' does not name a blob and its tensor"));
  EXPECT_THAT(error("a.0[2,x] b\n"), HasSubstr("a shape in brackets is not positive whole"));
  EXPECT_THAT(error("a.0 b[0]\n"), HasSubstr("a shape in brackets is not positive whole"));
  EXPECT_THAT(error("a.0[2] b[3]\n"), HasSubstr("have different numbers of elements"));
  EXPECT_THAT(error("a.0 =x\n"), HasSubstr("'=x' is not a number, as in '=1'"));
  EXPECT_THAT(error("a.0 b\na.0 c\n"), HasSubstr("'a.0' is there twice"));
  EXPECT_THAT(error("a.1 b\n"), HasSubstr("map.txt:1: 'a.1' is there, but 'a.0' is not"));
  EXPECT_THAT(error("# nothing\n"), HasSubstr("the table has no lines 'LAYER.BLOB TENSOR'"));
}

// Returns a net with BatchNorm's blobs, whose stored averages are twice their values.
caffe::NetParameter NormNet() {
  caffe::NetParameter net;
  auto* layer = net.add_layer();
  layer->set_name("bn");
  const std::vector<int64_t> dims = {1};
  for (const float value : {8.0f, 10.0f, 2.0f}) {
    WriteBlob(dims, std::vector<float>{value}, layer->add_blobs());
  }
  return net;
}

TEST_F(TensorModelTest, ExportsByTheNamesOfATable) {
  auto net = NormNet();
  WriteModel(folder_ / "w.caffemodel", net);
  const std::vector<std::string> files = {folder_ / "w.caffemodel"};
  const NamesTable table(folder_, "bn.0 n.running_mean[1,1]\nbn.1 n.running_var\nbn.2 =1\n");
  const std::string out = folder_ / "out.safetensors";
  EXPECT_EQ(ExportWeights(files, "", out), Join("Wrote ", out, ": 3 tensors, 3 numbers"));
  const SafetensorsFile file(out);
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "n.running_mean");
  EXPECT_THAT(file.tensors()[0].dims, ElementsAre(1, 1));
  std::vector<float> value(1);
  file.Read(file.tensors()[0], value);
  EXPECT_EQ(value[0], 4);
  file.Read(file.tensors()[1], value);
  EXPECT_EQ(value[0], 5);
}

TEST_F(TensorModelTest, ATableIsForTheFileThatHasItsNames) {
  auto net = NormNet();
  WriteModel(folder_ / "own.safetensors", net);
  const NamesTable table(folder_, "bn.0 n.running_mean\nbn.1 n.running_var\nbn.2 =1\n");
  const std::vector<std::string> own = {folder_ / "own.safetensors"};
  const std::vector<std::string> named = {folder_ / "named.safetensors"};
  ExportWeights(own, "", named[0]);
  EXPECT_TRUE(HasTensorOf(TensorNamesFile(), named[0]));
  EXPECT_FALSE(HasTensorOf(TensorNamesFile(), own[0]));
  ExportWeights(named, "", folder_ / "again.safetensors");
  EXPECT_EQ(ErrorOf([&] { ExportWeights(own, "", folder_ / "out.h5"); }).first, ErrorCode::kUsage);
  const caffe::NetParameter again = ReadModel(folder_ / "again.safetensors");
  ASSERT_EQ(again.layer(0).blobs_size(), 3);
  EXPECT_THAT(again.layer(0).blobs(0).data(), ElementsAre(4));
  EXPECT_THAT(again.layer(0).blobs(2).data(), ElementsAre(1));
}

TEST_F(TensorModelTest, RefusesToWriteNamesThatCannotBeRead) {
  const auto error = [&](const caffe::NetParameter& net, const std::string& table) {
    return DataError([&] { WriteTensorModel(folder_ / "out.npz", net, table); });
  };
  auto twice = NormNet();
  twice.add_layer()->CopyFrom(twice.layer(0));
  EXPECT_THAT(error(twice, ""), HasSubstr("out.npz: tensor 'bn.0' cannot be written: two blobs "));
  EXPECT_THAT(error(NormNet(), folder_.Write("map.txt", "bn.0 w\nbn.1 w\nbn.2 =1\n")),
              HasSubstr("tensor 'w' cannot be written: two blobs have this name"));
  auto latin = NormNet();
  latin.mutable_layer(0)->set_name("\xe9");
  EXPECT_THAT(error(latin, ""), HasSubstr("its name is not UTF-8"));
}

TEST_F(TensorModelTest, ExportRefusesWhatHasNoName) {
  auto net = NormNet();
  WriteModel(folder_ / "w.caffemodel", net);
  const std::vector<std::string> files = {folder_ / "w.caffemodel"};
  {
    const NamesTable table(folder_, "other.0 w\n");
    EXPECT_THAT(DataError([&] { ExportWeights(files, "", folder_ / "out.npz"); }),
                HasSubstr("map.txt: the table does not name layer 'bn', which has weights"));
    EXPECT_EQ(ErrorOf([&] { ExportWeights(files, "", folder_ / "out.h5"); }).first,
              ErrorCode::kUsage);
  }
  const NamesTable table(folder_, "bn.0 w\n");
  EXPECT_THAT(DataError([&] { ExportWeights(files, "", folder_ / "out.npz"); }),
              HasSubstr("map.txt:1: layer 'bn' has 3 blobs, and 1 in this table"));
  EXPECT_THAT(folder_.Names(), ElementsAre("map.txt", "w.caffemodel"));
}

TEST_F(TensorModelTest, ExportTakesTheLastOfSeveralFiles) {
  auto first = SmallNet(1), second = SmallNet(2);
  caffe::NetParameter third;
  third.add_layer()->set_name("ip");  // without weights
  second.add_layer()->CopyFrom(NormNet().layer(0));
  WriteModel(folder_ / "a.caffemodel", first);
  WriteModel(folder_ / "b.safetensors", second);
  WriteModel(folder_ / "c.caffemodel", third);
  const std::vector<std::string> files = {folder_ / "a.caffemodel", folder_ / "b.safetensors",
                                          folder_ / "c.caffemodel"};
  ExportWeights(files, "", folder_ / "out.caffemodel");
  const caffe::NetParameter read = ReadModel(folder_ / "out.caffemodel");
  EXPECT_EQ(FirstWeight(read), 2);
  EXPECT_EQ(read.layer(read.layer_size() - 1).name(), "bn");
}

TEST_F(TensorModelTest, TellsFormatsByContent) {
  const std::vector<float> one = {1};
  std::filesystem::rename(Write({{"ip.0", {1}, one}}), folder_ / "w.bin");
  EXPECT_TRUE(IsTensorFile(folder_ / "w.bin"));
  EXPECT_EQ(ReadModel(folder_ / "w.bin").layer(0).name(), "ip");
  EXPECT_FALSE(IsTensorFile(folder_.Write("net", "name: \"LeNet\"\n")));
  EXPECT_TRUE(IsNamedAsWeights("a.npz"));
  EXPECT_FALSE(IsNamedAsWeights("a.onnx"));
}

}  // namespace
}  // namespace trainer
