#include "trainer/datasets/class_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "storage/tar_text.h"
#include "storage/test_data.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::IsEmpty;
using testing::Pair;

TEST(InverseFrequencyWeightsTest, HandValues) {
  const int64_t counts[] = {60, 30, 10};
  EXPECT_THAT(InverseFrequencyWeights(counts, 1),
              ElementsAre(FloatEq(100 / 180.0f), FloatEq(100 / 90.0f), FloatEq(100 / 30.0f)));
  EXPECT_THAT(InverseFrequencyWeights(counts, 0), ElementsAre(1, 1, 1));
  // The power 0.5 gives 1 / sqrt(n), times 100 / (sqrt(60) + sqrt(30) + sqrt(10)).
  const float scale = 100 / (std::sqrt(60.0f) + std::sqrt(30.0f) + std::sqrt(10.0f));
  EXPECT_THAT(InverseFrequencyWeights(counts, 0.5),
              ElementsAre(FloatEq(scale / std::sqrt(60.0f)), FloatEq(scale / std::sqrt(30.0f)),
                          FloatEq(scale / std::sqrt(10.0f))));
}

TEST(InverseFrequencyWeightsTest, TheMeanOverRecordsIs1) {
  const std::vector<int64_t> counts = {1, 0, 1000000, 17, 400};
  for (const double power : {0.0, 0.3, 1.0, 2.0, 4.0}) {
    const std::vector<float> weights = InverseFrequencyWeights(counts, power);
    double sum = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      sum += static_cast<double>(weights[i]) * static_cast<double>(counts[i]);
      EXPECT_TRUE(std::isfinite(weights[i]));
    }
    EXPECT_NEAR(sum / 1000418, 1, 1e-6) << power;
    EXPECT_EQ(weights[1], 1) << "a class without records";
  }
}

class CountLabelsTest : public testing::Test {
 protected:
  std::map<float, int64_t> Count(const std::string& type, const std::string& fields,
                                 int top = 1) const {
    return CountLabels(KeptLayer("name: 'd' type: '" + type + "' top: 'x' top: 'y' " + fields),
                       top);
  }
  TempFolder folder_;
};

TEST_F(CountLabelsTest, OfDatabases) {
  Records records;
  for (int i = 0; i < 9; ++i) {
    records.emplace_back(Key8(i), MakeDatum(1, 1, 1, "x", i % 4 - 1).SerializeAsString());
  }
  for (const char* backend : {"LMDB", "LEVELDB"}) {
    WriteDb(backend, folder_ / backend, records);
    const std::string fields = Join("data_param { batch_size: 1 source: '", folder_ / backend,
                                    "' backend: ", backend, " }");
    EXPECT_THAT(Count("Data", fields),
                ElementsAre(Pair(-1, 3), Pair(0, 2), Pair(1, 2), Pair(2, 2)));
    EXPECT_THAT(Count("Data", fields, 0), IsEmpty()) << "labels that are images";
  }
}

TEST_F(CountLabelsTest, OfTheRecordsUpToTheLimit) {
  Records records;
  for (int i = 0; i < 9; ++i) {
    records.emplace_back(Key8(i), MakeDatum(1, 1, 1, "x", i < 5 ? 0 : 1).SerializeAsString());
  }
  WriteDb("LMDB", folder_ / "db", records);
  EXPECT_THAT(Count("Data", Join("data_param { batch_size: 1 limit: 6 backend: LMDB source: '",
                                 folder_ / "db", "' }")),
              ElementsAre(Pair(0, 5), Pair(1, 1)));
  WriteBytes(folder_ / "list", "a.png 2\nb.png 0\nc.png 2\n");
  EXPECT_THAT(Count("ImageData", Join("data_param { limit: 2 } image_data_param { batch_size: 1 "
                                      "source: '",
                                      folder_ / "list", "' }")),
              ElementsAre(Pair(0, 1), Pair(2, 1)));
}

TEST_F(CountLabelsTest, OfHdf5RowsUpToTheLimit) {
  std::string list;
  for (const float label : {1, 2, 3}) {
    const std::string path = folder_ / Join(label, ".h5");
    Hdf5Appender file(path);
    file.Append("x", std::vector<int64_t>{2, 1}, std::vector<float>{0, 0});
    file.Append("y", std::vector<int64_t>{2}, std::vector<float>{label, label});
    file.Flush();
    list += path + "\n";
  }
  WriteBytes(folder_ / "list", list);
  EXPECT_THAT(Count("HDF5Data", Join("data_param { limit: 3 } hdf5_data_param { batch_size: 1 "
                                     "source: '",
                                     folder_ / "list", "' }")),
              ElementsAre(Pair(1, 2), Pair(2, 1)));
}

TEST_F(CountLabelsTest, OfTarFilesWithoutDecodingThem) {
  std::string tar;
  for (int i = 0; i < 5; ++i) {
    tar += TarEntryText(Join("p", i, ".png"), "no picture") +
           TarEntryText(Join("p", i, ".cls"), Join(i == 3));
  }
  WriteBytes(folder_ / "set.tar", tar + TarEnd());
  EXPECT_THAT(Count("Data", Join("data_param { batch_size: 1 backend: TAR source: '",
                                 folder_ / "set.tar", "' }")),
              ElementsAre(Pair(0, 4), Pair(1, 1)));
}

TEST_F(CountLabelsTest, OfLists) {
  WriteBytes(folder_ / "list", "a.png 2\nb.png 0\nc.png 2\n");
  const std::string source = Join(" source: '", folder_ / "list", "' }");
  EXPECT_THAT(Count("ImageData", "image_data_param { batch_size: 1" + source),
              ElementsAre(Pair(0, 1), Pair(2, 2)));
  EXPECT_THAT(Count("WindowData", "window_data_param { batch_size: 1" + source), IsEmpty());
  EXPECT_THAT(Count("MemoryData", "memory_data_param { batch_size: 1 }"), IsEmpty());
}

TEST_F(CountLabelsTest, OfAllFilesOfHdf5Rows) {
  std::string list;
  for (int i = 0; i < 30; ++i) {
    const std::string path = folder_ / Join(i, ".h5");
    Hdf5Appender file(path);
    const float label = i == 29 ? 4 : 1;
    file.Append("x", std::vector<int64_t>{2, 1}, std::vector<float>{0, 0});
    file.Append("y", std::vector<int64_t>{2}, std::vector<float>{label, 1});
    file.Flush();
    list += path + "\n";
  }
  WriteBytes(folder_ / "list", list);
  EXPECT_THAT(
      Count("HDF5Data", Join("hdf5_data_param { batch_size: 1 source: '", folder_ / "list", "' }")),
      ElementsAre(Pair(1, 59), Pair(4, 1)));
}

}  // namespace
}  // namespace trainer
