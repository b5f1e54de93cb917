#include "trainer/inference/predict/blob_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "inference/small_net.h"
#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/hdf5/appender.h"
#include "trainer/storage/array_writer.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Lt;

constexpr char kNet[] = R"(
layer { name: "in" type: "Input" top: "image" top: "row"
  input_param { shape { dim: 2 dim: 2 dim: 1 dim: 3 } shape { dim: 2 dim: 1 } } }
layer { name: "relu" type: "ReLU" bottom: "image" top: "image" }
layer { name: "twice" type: "Power" bottom: "image" top: "twice" power_param { scale: 2 } }
)";

// Writes datasets whose values count up from 0.
void WriteRows(const std::string& path,
               const std::vector<std::pair<std::string, std::vector<int64_t>>>& datasets) {
  Hdf5Appender file(path);
  for (const auto& [name, dims] : datasets) {
    const int64_t count =
        std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    std::vector<float> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 0.0f);
    file.Append(name, dims, values);
  }
  file.Close();
}

class BlobSourceTest : public testing::Test {
 protected:
  std::pair<ErrorCode, std::string> Refusal() const {
    return ErrorOf([&] { MakeArraySource(path_, *small_.net); });
  }

  TempFolder folder_;
  std::string path_ = folder_ / "in.h5";
  SmallNet small_{kNet};
};

TEST_F(BlobSourceTest, AnInputIsWhatItsLayerWritesWhoeverWorksInItsPlace) {
  const std::vector<InputBlob> inputs = InputBlobs(*small_.net);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].name, "image");
  EXPECT_EQ(inputs[0].value.shape, (Shape{2, 2, 1, 3}));
  EXPECT_NE(inputs[0].value.data, small_.net->Value("image").data);
  EXPECT_EQ(inputs[1].name, "row");
}

TEST_F(BlobSourceTest, RowsFillTheBatchInOrderAndZerosTheRest) {
  WriteRows(path_, {{"image", {3, 2, 1, 3}}, {"row", {3, 1}}});
  const auto source = MakeArraySource(path_, *small_.net);
  EXPECT_EQ(source->Fill(*small_.net), 2);
  small_.net->Forward();
  EXPECT_THAT(small_.Get("twice"), ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22));
  EXPECT_THAT(small_.Get("row"), ElementsAre(0, 1));
  EXPECT_EQ(source->Fill(*small_.net), 1);
  small_.net->Forward();
  EXPECT_THAT(small_.Get("twice"), ElementsAre(24, 26, 28, 30, 32, 34, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(small_.Get("row"), ElementsAre(2, 0));
  EXPECT_EQ(source->Fill(*small_.net), 0);
}

TEST_F(BlobSourceTest, FilesOfNumpyFillInputs) {
  const SmallNet one(
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 2 } } } "
      "layer { name: 'twice' type: 'Power' bottom: 'x' top: 'twice' power_param { scale: 2 } }");
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {3, 2};
  for (const char* name : {"x.npz", "any.npy"}) {
    const auto writer = OpenArrayWriter(folder_ / name);
    writer->Append("x", dims, std::span<const float>(values));
    writer->Finish();
    const auto source = MakeArraySource(folder_ / name, *one.net);
    EXPECT_EQ(source->Fill(*one.net), 2);
    EXPECT_EQ(source->Fill(*one.net), 1);
    one.net->Forward();
    EXPECT_THAT(one.Get("twice"), ElementsAre(10, 12, 0, 0)) << name;
  }
}

TEST_F(BlobSourceTest, RefusesAFileThatDoesNotFit) {
  EXPECT_EQ(Refusal().first, ErrorCode::kNoInput);
  WriteRows(path_, {{"image", {2, 2, 1, 3}}});
  EXPECT_EQ(Refusal().first, ErrorCode::kData);
  EXPECT_THAT(Refusal().second, HasSubstr("'row' is not in this file; the file has: image"));
  WriteRows(path_, {{"image", {2, 2, 3, 1}}, {"row", {2, 1}}});
  EXPECT_THAT(Refusal().second, HasSubstr("dataset 'image' has the shape (2, 2, 3, 1), but the "
                                          "input needs (rows, 2, 1, 3)"));
  WriteRows(path_, {{"image", {3, 2, 1, 3}}, {"row", {2, 1}}});
  EXPECT_THAT(Refusal().second,
              HasSubstr("dataset 'row' has 2 rows, enough for 1 passes of 2; the first input has "
                        "enough for 2"));
  WriteRows(path_, {{"image", {0, 2, 1, 3}}, {"row", {0, 1}}});
  EXPECT_THAT(Refusal().second, HasSubstr("dataset 'image' has 0 rows"));
}

TEST_F(BlobSourceTest, AnInputWithoutAxesIsRefused) {
  const SmallNet scalar("layer { name: 's' type: 'Input' top: 's' input_param { shape { } } }");
  const auto [code, message] = ErrorOf([&] { InputBlobs(*scalar.net); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(message, HasSubstr("input 's' has no batch axis; give it at least one dimension"));
}

TEST_F(BlobSourceTest, RandomNumbersDependOnSeedAndPassAlone) {
  const auto pass = [&](uint64_t seed, int passes) {
    const auto source = MakeRandomSource(seed, passes);
    for (int i = 0; i < passes; ++i) EXPECT_EQ(source->Fill(*small_.net), 2);
    EXPECT_EQ(source->Fill(*small_.net), 0);
    small_.net->Forward();
    return small_.Get("twice");
  };
  const std::vector<float> first = pass(1, 1);
  EXPECT_THAT(first, Each(AllOf(Ge(0), Lt(2))));
  EXPECT_GT(std::set<float>(first.begin(), first.end()).size(), 10u);
  EXPECT_NE(pass(1, 2), first);
  EXPECT_NE(pass(2, 1), first);
  EXPECT_EQ(pass(1, 1), first);
}

}  // namespace
}  // namespace trainer
