#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_data.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

using testing::ElementsAre;

// Writes two files, of 3 and 4 rows; row i of file k is the number 10 k + i.
class Hdf5RowsTest : public testing::Test {
 protected:
  Hdf5RowsTest() {
    std::string list;
    for (int file = 0; file < 2; ++file) {
      Hdf5Appender rows(Path(file));
      std::vector<float> labels;
      for (int i = 0; i < 3 + file; ++i) labels.push_back(static_cast<float>(10 * file + i));
      rows.Append("label", std::vector<int64_t>{3 + file}, labels);
      rows.Flush();
      list += Path(file) + "\n";
    }
    WriteBytes(folder_ / "list", list);
  }
  std::string Path(int file) const { return folder_ / Join("rows", file, ".h5"); }
  std::unique_ptr<BatchQueue> Make(const std::string& fields, Rank rank = {}) const {
    return OpenHdf5Rows(KeptLayer("name: 'd' type: 'HDF5Data' top: 'label' hdf5_data_param { "
                                  "source: '" +
                                  (folder_ / "list") + "' " + fields + " }"),
                        {caffe::TRAIN, {1, 2}, rank});
  }

  TempFolder folder_;
};

TEST_F(Hdf5RowsTest, NamesTheRowOfEachItem) {
  for (const char* shuffle : {"", " shuffle: true"}) {
    for (const int ranks : {1, 2}) {
      for (const int batches : {1, 3, 5}) {
        const auto rows = Make(Join("batch_size: 2", shuffle), {ranks - 1, ranks});
        for (int i = 1; i < batches; ++i) rows->Next();
        const auto label = static_cast<int>(rows->Next().output(0)[1]);
        EXPECT_EQ(rows->RecordName(1), Join("row ", label % 10, " of ", Path(label / 10)));
      }
    }
  }
}

// permutation() in scripts/golden/philox.py computed the orders.
TEST_F(Hdf5RowsTest, GoldenOrdersOfTheEpochs) {
  const auto rows = Make("batch_size: 7 shuffle: true");
  EXPECT_THAT(Numbers(rows->Next().output(0)), ElementsAre(10, 13, 12, 11, 1, 0, 2));
  EXPECT_THAT(Numbers(rows->Next().output(0)), ElementsAre(12, 11, 10, 13, 0, 1, 2));
  EXPECT_THAT(Numbers(rows->Next().output(0)), ElementsAre(1, 2, 0, 13, 11, 12, 10));
}

TEST_F(Hdf5RowsTest, APositionHoldsTheNumberOfRowsFromTheStart) {
  const auto rows = Make("batch_size: 2");
  EXPECT_EQ(rows->position().Encode(), "1 0 0 7");
  for (int i = 0; i < 4; ++i) rows->Next();
  EXPECT_EQ(rows->position().Encode(), "1 8 1 7");
}

}  // namespace
}  // namespace trainer
