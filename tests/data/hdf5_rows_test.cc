#include "trainer/data/hdf5_rows.h"

#include <gtest/gtest.h>

#include "data/test_data.h"
#include "trainer/base/text.h"
#include "trainer/hdf5/appender.h"

namespace trainer {
namespace {

TEST(Hdf5RowsTest, NamesTheRowOfEachItem) {
  const TempFolder folder;
  std::string list;
  for (int file = 0; file < 2; ++file) {
    const std::string path = folder / Join("rows", file, ".h5");
    Hdf5Appender rows(path);
    std::vector<float> labels;
    for (int i = 0; i < 3 + file; ++i) labels.push_back(static_cast<float>(10 * file + i));
    rows.Append("label", std::vector<int64_t>{3 + file}, labels);
    rows.Flush();
    list += path + "\n";
  }
  WriteBytes(folder / "list", list);
  for (const bool shuffle : {false, true}) {
    for (const int ranks : {1, 2}) {
      for (const int batches : {1, 3, 5}) {
        Hdf5RowsOptions options;
        options.list = folder / "list";
        options.datasets = {"label"};
        options.batch_size = 2;
        options.shuffle = shuffle;
        options.key = {1, 2};
        options.replica = {ranks - 1, ranks};
        Hdf5Rows rows(options);
        for (int i = 1; i < batches; ++i) rows.Next();
        const auto label = static_cast<int>(rows.Next().outputs[0][1]);
        EXPECT_EQ(rows.NameOfItem(1),
                  Join("row ", label % 10, " of ", folder / Join("rows", label / 10, ".h5")));
      }
    }
  }
}

}  // namespace
}  // namespace trainer
