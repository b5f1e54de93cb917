// Tests weights and states in HDF5: the layout, files of other programs, and every kind of damage.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_snapshot.h"
#include "support/error_of.h"
#include "support/source_folder.h"
#include "support/temp_folder.h"
#include "trainer/checkpoint/solver_state.h"
#include "trainer/hdf5/builder.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kGolden = SourceFolder() + "/tests/golden/";

std::vector<float> Numbers(const caffe::BlobProto& blob) {
  return {blob.data().begin(), blob.data().end()};
}

std::vector<float> Numbers(const Hdf5Reader& file, const std::string& name) {
  const Hdf5Array array = file.Array(name);
  std::vector<float> values(static_cast<size_t>(array.count()));
  array.Read(std::span<float>(values));
  return values;
}

const caffe::LayerParameter& Layer(const caffe::NetParameter& net, const std::string& name) {
  for (const caffe::LayerParameter& layer : net.layer()) {
    if (layer.name() == name) return layer;
  }
  ADD_FAILURE() << "no layer " << name;
  return caffe::LayerParameter::default_instance();
}

TEST(Hdf5ModelTest, HasCaffesLayoutAndReadsBack) {
  const TempFolder folder;
  auto net = SmallNet(5);
  net.mutable_layer(0)->mutable_blobs(1)->add_diff(0.5f);
  net.mutable_layer(0)->mutable_blobs(1)->add_diff(0.25f);
  const FileChecksum seal = WriteModel(folder / "m.caffemodel.h5", net);
  EXPECT_EQ(seal.file_bytes, std::filesystem::file_size(folder / "m.caffemodel.h5"));
  const Hdf5Reader file(folder / "m.caffemodel.h5");
  EXPECT_THAT(file.Array("data/ip/0").dims(), ElementsAre(2, 3));
  EXPECT_THAT(Numbers(file, "data/ip/0"), ElementsAre(5, 6, 7, 8, 9, 10));
  EXPECT_THAT(Numbers(file, "diff/ip/1"), ElementsAre(0.5f, 0.25f));
  EXPECT_TRUE(file.Has("data/relu"));
  const auto read = ReadModel(folder / "m.caffemodel.h5");
  EXPECT_THAT(Numbers(Layer(read, "ip").blobs(0)), ElementsAre(5, 6, 7, 8, 9, 10));
  EXPECT_THAT(Layer(read, "ip").blobs(0).shape().dim(), ElementsAre(2, 3));
  EXPECT_EQ(Layer(read, "relu").blobs_size(), 0);
}

TEST(Hdf5ModelTest, IsKnownByItsContentNotItsName) {
  const TempFolder folder;
  auto net = SmallNet(5);
  WriteModel(folder / "a.caffemodel.h5", net);
  WriteModel(folder / "b.caffemodel", net);
  std::filesystem::rename(folder / "a.caffemodel.h5", folder / "weights");
  std::filesystem::rename(folder / "b.caffemodel", folder / "binary.h5");
  EXPECT_EQ(Layer(ReadModel(folder / "weights"), "ip").blobs(0).data(0), 5);
  EXPECT_EQ(FirstWeight(ReadModel(folder / "binary.h5")), 5);
}

TEST(Hdf5ModelTest, KeepsLayersWhoseNamesHaveSlashes) {
  const TempFolder folder;
  caffe::NetParameter net;
  for (const char* name : {"inception", "inception/1x1", "inception/3x3/reduce", "a/b"}) {
    auto* layer = net.add_layer();
    layer->set_name(name);
    WriteBlob(std::vector<int64_t>{1}, std::vector<float>{float(net.layer_size())},
              layer->add_blobs());
  }
  WriteModel(folder / "m.h5", net);
  const auto read = ReadModel(folder / "m.h5");
  EXPECT_EQ(read.layer_size(), 4);
  for (const caffe::LayerParameter& layer : net.layer()) {
    EXPECT_THAT(Numbers(Layer(read, layer.name()).blobs(0)), Numbers(layer.blobs(0)));
  }
}

TEST(Hdf5ModelTest, StoresASharedBlobWithItsOwnerAlone) {
  const TempFolder folder;
  auto net = SmallNet(5);
  *net.add_layer() = net.layer(0);
  net.mutable_layer(2)->set_name("twin");
  for (const int i : {0, 2}) net.mutable_layer(i)->add_param()->set_name("w");
  WriteModel(folder / "m.h5", net);
  EXPECT_FALSE(Hdf5Reader(folder / "m.h5").Has("data/twin/0"));
  const auto read = ReadModel(folder / "m.h5");
  EXPECT_EQ(Layer(read, "twin").blobs(0).ByteSizeLong(), 0u);
  EXPECT_THAT(Numbers(Layer(read, "twin").blobs(1)), ElementsAre(5, 5));
}

TEST(Hdf5ModelTest, RefusesNamesThatHdf5CannotTellApart) {
  using Names = std::vector<std::string>;
  CheckHdf5Names(Names{"a", "a/b", "conv1_0", "0", "b/0"});
  for (const Names& names : {Names{"a//b"}, Names{"/a"}, Names{"a/"}, Names{"a/./b"}, Names{""},
                             Names{"a/0", "a"}, Names{"a", "a/12/b"}}) {
    const auto [code, message] = ErrorOf([&] { CheckHdf5Names(names); });
    EXPECT_EQ(code, ErrorCode::kConfig);
    EXPECT_THAT(message, AllOf(HasSubstr("cannot be saved as HDF5: "),
                               HasSubstr("set snapshot_format: BINARYPROTO")));
  }
}

TEST(Hdf5ModelTest, ReadsWhatH5pyWrote) {
  for (const char* name : {"hdf5_weights.h5", "hdf5_latest.h5"}) {
    const auto net = ReadModel(kGolden + name);
    EXPECT_EQ(net.layer_size(), 3);
    EXPECT_THAT(Numbers(Layer(net, "ip").blobs(0)), ElementsAre(0, 0.5, 1, 1.5, 2, 2.5));
    EXPECT_THAT(Numbers(Layer(net, "ip").blobs(1)), ElementsAre(-1, -0.5));
    EXPECT_THAT(Numbers(Layer(net, "block/1x1").blobs(0)), ElementsAre(100, 100.5));
    EXPECT_EQ(Layer(net, "relu").blobs_size(), 0);
  }
}

TEST(Hdf5ModelTest, RefusesWhatIsNoFileOfWeights) {
  const auto refusal = [](const std::string& path, ErrorCode expected) {
    const auto [code, message] = ErrorOf([&] { ReadModel(path); });
    EXPECT_EQ(code, expected) << message;
    return message;
  };
  EXPECT_THAT(refusal(kGolden + "hdf5_rows_a.h5", ErrorCode::kData),
              HasSubstr("hdf5_rows_a.h5: the file has no group 'data'"));
  EXPECT_THAT(refusal(kGolden + "hdf5_loop.h5", ErrorCode::kData),
              HasSubstr("'data/ip/again' is a second name of another object"));
  EXPECT_THAT(refusal(kGolden + "hdf5_state.h5", ErrorCode::kUsage),
              HasSubstr("this is a solver state, not a weights file"));
  const TempFolder folder;
  Hdf5Builder builder("x", 0);
  builder.AddInt("data/ip/0", 4);
  builder.Finish();
  std::string bytes;
  builder.Emit(0, [&](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  });
  WriteText(folder / "ints.h5", bytes);
  EXPECT_THAT(refusal(folder / "ints.h5", ErrorCode::kData),
              HasSubstr("'data/ip/0' has integers, but weights must be floats"));
}

// Writes run/m.caffemodel.h5 and run/s.solverstate.h5.
class Hdf5StateTest : public testing::Test {
 protected:
  Hdf5StateTest() {
    auto net = SmallNet(5);
    state_proto_.set_iter(500);
    state_proto_.set_random_seed(0xffffffffffffull);
    state_proto_.set_solver_type("Adam");
    state_proto_.add_recent_losses(0.1f);
    state_proto_.add_progress()->set_net("train");
    state_proto_.mutable_progress(0)->add_layers()->set_state(std::string("1 2 3 \0x", 8));
    SetModel(model_, WriteModel(model_, net), &state_proto_);
    WriteState(state_, state_proto_);
  }

  std::string Refusal(ErrorCode expected = ErrorCode::kBadSnapshot) {
    const auto [code, message] = ErrorOf([&] { ReadState(state_); });
    EXPECT_EQ(code, expected) << message;
    return message;
  }

  TempFolder folder_;
  caffe::SolverState state_proto_ = SmallState(5);
  const std::string model_ = folder_ / "m.caffemodel.h5";
  const std::string state_ = folder_ / "s.solverstate.h5";
};

TEST_F(Hdf5StateTest, ReadsBackEveryField) {
  const LoadedState loaded = ReadState(state_);
  EXPECT_EQ(loaded.state.SerializeAsString(), state_proto_.SerializeAsString());
  EXPECT_EQ(loaded.model_path, model_);
  const Hdf5Reader file(state_);
  EXPECT_THAT(Numbers(file, "iter"), ElementsAre(500));
  EXPECT_THAT(Numbers(file, "current_step"), ElementsAre(3));
  EXPECT_THAT(Numbers(file, "history/0"), ElementsAre(5, -5));
  EXPECT_EQ(file.Text("learned_net"), model_);
}

TEST_F(Hdf5StateTest, ReadsWhatH5pyWroteAsCaffeWould) {
  const LoadedState loaded = ReadState(kGolden + "hdf5_state.h5");
  EXPECT_EQ(loaded.state.iter(), 7);
  EXPECT_EQ(loaded.state.current_step(), 2);
  EXPECT_EQ(loaded.state.history_size(), 3);
  EXPECT_THAT(Numbers(loaded.state.history(1)), ElementsAre(10, 10.5));
  EXPECT_EQ(loaded.model_path, kGolden + "hdf5_weights.h5");
}

TEST_F(Hdf5StateTest, RefusesWeightsInItsPlace) {
  const auto [code, message] = ErrorOf([&] { ReadState(model_); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(message, HasSubstr("this is a weights file, not a solver state"));
  EXPECT_EQ(ErrorOf([&] { ReadState(kGolden + "hdf5_weights.h5"); }).first, ErrorCode::kUsage);
}

TEST_F(Hdf5StateTest, RefusesWeightsOfAnotherState) {
  auto other = SmallNet(6);
  WriteModel(model_, other);
  EXPECT_THAT(Refusal(), HasSubstr("these are not the weights that the solver state"));
}

TEST_F(Hdf5StateTest, RefusesEitherFileCutAtAnyLength) {
  for (const std::string& path : {state_, model_}) {
    const std::string whole = ReadText(path);
    for (size_t length = 0; length < whole.size(); length += length < 60 ? 1 : 97) {
      WriteText(path, whole.substr(0, length));
      EXPECT_THAT(Refusal(), testing::AnyOf(HasSubstr("is truncated"), HasSubstr("is empty")))
          << length;
    }
    WriteText(path, whole);
  }
  ReadState(state_);
}

TEST_F(Hdf5StateTest, RefusesEitherFileWithAnyBitFlipped) {
  for (const std::string& path : {state_, model_}) {
    const std::string whole = ReadText(path);
    for (size_t bit = 0; bit < whole.size() * 8; bit += bit < 8 * 62 ? 1 : 101) {
      std::string bad = whole;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      WriteText(path, bad);
      Refusal();
    }
    WriteText(path, whole + "x");
    EXPECT_THAT(Refusal(), HasSubstr("was changed or damaged after it was written"));
    WriteText(path, whole);
  }
}

}  // namespace
}  // namespace trainer
