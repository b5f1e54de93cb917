#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/error_of.h"
#include "support/layer_runner.h"
#include "support/net_text.h"
#include "support/source_folder.h"
#include "support/temp_folder.h"
#include "support/test_device.h"
#include "trainer/hdf5/appender.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kGolden = SourceFolder() + "/tests/golden/";

// The layer's tops are y0 (rows of 2) and y1 (labels); file k holds rows 10k, 10k + 1, ...
class Hdf5DataTest : public testing::Test {
 protected:
  Hdf5DataTest() {
    MakeFile("a.h5", 0, 4);
    MakeFile("b.h5", 10, 3);
    WriteText(List(), folder_ / "a.h5" + "\r\n  " + (folder_ / "b.h5") + "\n\n");
  }

  void MakeFile(const std::string& name, int first, int rows, int labels = -1) const {
    Hdf5Appender file(folder_ / name);
    std::vector<float> values, numbers;
    for (int i = first; i < first + rows; ++i) {
      values.insert(values.end(), {static_cast<float>(i), static_cast<float>(i) + 0.5f});
    }
    for (int i = first; i < first + (labels < 0 ? rows : labels); ++i) {
      numbers.push_back(static_cast<float>(i));
    }
    file.Append("y0", std::vector<int64_t>{rows, 2}, values);
    file.Append("y1", std::vector<int64_t>{static_cast<int64_t>(numbers.size())}, numbers);
    file.Flush();
  }

  std::string List() const { return folder_ / "list.txt"; }
  std::string Text(const std::string& fields, const std::string& more = "") const {
    return "type: \"HDF5Data\"\nhdf5_data_param { source: '" + List() + "' " + fields + " }\n" +
           more;
  }
  // Returns the labels of the next `batches` batches, and checks that the data match them.
  static std::vector<float> Labels(LayerRunner& data, int batches) {
    std::vector<float> all;
    for (int i = 0; i < batches; ++i) {
      data.Forward();
      for (size_t k = 0; k < data.Output(1).size(); ++k) {
        EXPECT_EQ(data.Output(0)[2 * k], data.Output(1)[k]);
        EXPECT_EQ(data.Output(0)[2 * k + 1], data.Output(1)[k] + 0.5f);
      }
      all.insert(all.end(), data.Output(1).begin(), data.Output(1).end());
    }
    return all;
  }
  std::pair<ErrorCode, std::string> Refusal(const std::string& text) const {
    return ErrorOf([&] { LayerRunner(text, {}, kTwo); });
  }

  static constexpr RunnerOptions kTwo = {.outputs = 2};
  TempFolder folder_;
};

TEST_F(Hdf5DataTest, HandValuesGoThroughTheFilesAndRound) {
  LayerRunner data(Text("batch_size: 3"), {}, kTwo);
  EXPECT_EQ(data.OutputShape(0), Shape({3, 2}));
  EXPECT_EQ(data.OutputShape(1), Shape({3}));
  EXPECT_THAT(Labels(data, 3), ElementsAre(0, 1, 2, 3, 10, 11, 12, 0, 1));
}

TEST_F(Hdf5DataTest, ABatchMayBeLargerThanAllFiles) {
  LayerRunner data(Text("batch_size: 9"), {}, kTwo);
  EXPECT_THAT(Labels(data, 1), ElementsAre(0, 1, 2, 3, 10, 11, 12, 0, 1));
}

TEST_F(Hdf5DataTest, SkipsFilesWithoutRows) {
  MakeFile("none.h5", 0, 0);
  WriteText(List(), folder_ / "none.h5" + " " + (folder_ / "b.h5") + " " + (folder_ / "none.h5"));
  LayerRunner data(Text("batch_size: 2"), {}, kTwo);
  EXPECT_THAT(Labels(data, 2), ElementsAre(10, 11, 12, 10));
}

TEST_F(Hdf5DataTest, ShuffleDrawsEveryRowOncePerEpochInOrdersOfItsOwn) {
  LayerRunner data(Text("batch_size: 7 shuffle: true"), {}, kTwo);
  std::set<std::vector<float>> orders;
  for (int epoch = 0; epoch < 20; ++epoch) {
    std::vector<float> order = Labels(data, 1);
    orders.insert(order);
    EXPECT_EQ(order[0] < 10, order[3] < 10 && order[1] < 10) << "a file's rows stay together";
    std::sort(order.begin(), order.end());
    EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 10, 11, 12));
  }
  EXPECT_GT(orders.size(), 15u);
}

TEST_F(Hdf5DataTest, ShuffleDependsOnTheSeedAndOnNothingElse) {
  const auto labels = [&](uint64_t seed) {
    LayerRunner data(Text("batch_size: 7 shuffle: true"), {}, {.outputs = 2, .seed = seed});
    return Labels(data, 4);
  };
  EXPECT_EQ(labels(5), labels(5));
  EXPECT_NE(labels(5), labels(6));
}

TEST_F(Hdf5DataTest, ASavedPositionGoesOnWithTheNextBatch) {
  for (const char* fields : {"batch_size: 2", "batch_size: 2 shuffle: true"}) {
    LayerRunner first(Text(fields), {}, kTwo);
    for (int passed = 0; passed < 9; ++passed) {
      LayerRunner second(Text(fields), {}, kTwo);
      second.layer().RestoreState(first.layer().SaveState());
      EXPECT_EQ(second.layer().SaveState(), first.layer().SaveState());
      LayerRunner third(Text(fields), {}, kTwo);
      third.layer().RestoreState(first.layer().SaveState());
      const std::vector<float> expected = Labels(first, 1);
      EXPECT_EQ(Labels(second, 1), expected) << fields << " after " << passed;
      EXPECT_EQ(second.layer().SaveState(), first.layer().SaveState());
    }
  }
}

TEST_F(Hdf5DataTest, HandValuesOfImagesComeInPlainOrder) {
  Hdf5Appender file(folder_ / "image.h5");
  file.Append("y0", std::vector<int64_t>{1, 2, 1, 2}, std::vector<float>{1, 2, 3, 4});
  file.Flush();
  WriteText(List(), folder_ / "image.h5");
  LayerRunner data(Text("batch_size: 1"), {});
  EXPECT_EQ(data.OutputShape(), Shape({1, 2, 1, 2}));
  data.Forward();
  EXPECT_THAT(data.Output(), testing::ElementsAre(1, 2, 3, 4));
}

TEST_F(Hdf5DataTest, RefusesThePositionOfOtherFiles) {
  LayerRunner first(Text("batch_size: 2"), {}, kTwo);
  first.Forward();
  const std::string state = first.layer().SaveState();
  MakeFile("b.h5", 10, 5);
  LayerRunner second(Text("batch_size: 2"), {}, kTwo);
  const auto [code, message] = ErrorOf([&] { second.layer().RestoreState(state); });
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(message, HasSubstr("have 9 rows now, but had 7 when the snapshot was made"));
  for (const char* nonsense : {"1 3 7 9", "1 30 0 9"}) {
    EXPECT_THAT(ErrorOf([&] { second.layer().RestoreState(nonsense); }).second,
                HasSubstr("position in these files is invalid"));
  }
}

TEST_F(Hdf5DataTest, RefusesAFileThatIsReplacedWhileInUse) {
  MakeFile("c.h5", 20, 100);
  WriteText(List(), folder_ / "a.h5" + "\n" + (folder_ / "c.h5"));
  LayerRunner data(Text("batch_size: 1"), {}, kTwo);
  MakeFile("c.h5", 20, 99);
  const auto [code, message] = ErrorOf([&] {
    for (int i = 0; i < 20; ++i) data.Forward();
  });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(message, HasSubstr("c.h5: the file was changed during the run"));
}

TEST_F(Hdf5DataTest, LogsTheListAndTheFiles) {
  testing::internal::CaptureStderr();
  LayerRunner data(Text("batch_size: 2"), {}, kTwo);
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("] Loading list of HDF5 filenames from: " + List() + "\n"),
            HasSubstr("] Number of HDF5 files: 2\n"), HasSubstr("] Datatype class: H5T_FLOAT\n")));
}

// h5py wrote these files, with compressed chunks of images, labels of one byte, and doubles.
TEST(Hdf5DataGoldenTest, ReadsWhatH5pyWrote) {
  const TempFolder folder;
  WriteText(folder / "net.prototxt", "");
  WriteText(folder / "list.txt", kGolden + "hdf5_rows_a.h5\n" + kGolden + "hdf5_rows_b.h5\n");
  const std::string net = R"(layer { name: "in" type: "HDF5Data" top: "image" top: "label"
      top: "vector" hdf5_data_param { batch_size: 4 source: ")" +
                          (folder / "list.txt") + "\" } }";
  const NetSpec spec = NetFromText(net);
  const auto device = MakeTestDevice(1);
  ParamStore params(*device);
  NetOptions options;
  options.log = false;
  Net data(spec, options, *device, params);
  for (int first : {0, 4}) {
    data.Forward();
    std::vector<float> image(48), label(4), vector(8);
    data.ReadNchw(data.Value("image"), image);
    data.ReadNchw(data.Value("label"), label);
    data.ReadNchw(data.Value("vector"), vector);
    for (int i = 0; i < 48; ++i) EXPECT_EQ(image[i], (first + i / 12) * 100 + i % 12) << i;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(label[i], first + i);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(vector[i], first + i / 2 + (i % 2) * 0.25f);
  }
}

TEST_F(Hdf5DataTest, RefusesBadFields) {
  EXPECT_THAT(Refusal(Text("batch_size: 0")).second,
              HasSubstr(" layer 'it' (HDF5Data): batch_size is 0; it must be 1 to 16777216"));
  EXPECT_THAT(Refusal("type: \"HDF5Data\" hdf5_data_param { batch_size: 1 }").second,
              HasSubstr("source is missing; give the path of the list of HDF5 files"));
  EXPECT_THAT(Refusal(Text("batch_size: 1", "transform_param { scale: 2 }")).second,
              HasSubstr("rows of HDF5 files are not transformed; remove transform_param"));
}

TEST_F(Hdf5DataTest, RefusesBadListsAndFilesWithASentence) {
  const auto refused = [&](const std::string& list, ErrorCode expected, const std::string& part) {
    WriteText(List(), list);
    const auto [code, message] = Refusal(Text("batch_size: 1"));
    EXPECT_EQ(code, expected) << message;
    EXPECT_THAT(message, AllOf(HasSubstr("list.txt"), HasSubstr(part)));
  };
  refused("\n \n", ErrorCode::kData, "this list of HDF5 files is empty");
  refused(ReadText(folder_ / "a.h5"), ErrorCode::kData,
          "this is an HDF5 file, but source must be a text file that lists such files");
  refused("\n" + (folder_ / "none.h5"), ErrorCode::kNoInput, "list.txt:2: ");
  refused(folder_ / "list.txt", ErrorCode::kData, "not an HDF5 file");
  refused(kGolden + "hdf5_rows_a.h5", ErrorCode::kData, "'y0' is not in this file; the file has: ");
  MakeFile("uneven.h5", 0, 3, 2);
  refused(folder_ / "uneven.h5", ErrorCode::kData, "'y1' has 2 rows, but 'y0' has 3");
  MakeFile("none.h5", 0, 0);
  refused(folder_ / "none.h5", ErrorCode::kData, "have no rows");
  {
    Hdf5Appender other(folder_ / "other.h5");
    other.Append("y0", std::vector<int64_t>{2, 3}, std::vector<float>(6));
    other.Append("y1", std::vector<int64_t>{2}, std::vector<float>(2));
  }
  refused(folder_ / "a.h5" + " " + (folder_ / "other.h5"), ErrorCode::kData,
          "'y0' has rows of shape 3 (3), but the first file has 2 (2)");
  const std::string whole = ReadText(folder_ / "a.h5");
  WriteText(folder_ / "cut.h5", whole.substr(0, whole.size() - 100));
  refused(folder_ / "cut.h5", ErrorCode::kData, "truncated file");
  std::filesystem::remove(List());
  EXPECT_EQ(Refusal(Text("batch_size: 1")).first, ErrorCode::kNoInput);
}

}  // namespace
}  // namespace trainer
