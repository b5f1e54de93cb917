#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/layer_runner.h"
#include "support/temp_folder.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Text(const std::string& path) {
  return "type: \"HDF5Output\" hdf5_output_param { file_name: '" + path + "' }";
}

std::vector<float> Floats(const Hdf5Reader& file, const std::string& name) {
  const Hdf5Array array = file.Array(name);
  std::vector<float> values(static_cast<size_t>(array.count()));
  array.Read(std::span<float>(values));
  return values;
}

TEST(Hdf5OutputTest, HandValuesOfTwoPassesStandBehindEachOther) {
  const TempFolder folder;
  WriteText(folder / "out.h5", "an older file");
  std::vector<float> images, labels;
  {
    LayerRunner output(Text(folder / "out.h5"), {{2, 3, 2, 2}, {2}}, {.outputs = 0});
    EXPECT_EQ(ReadText(folder / "out.h5"), "an older file") << "nothing was written yet";
    for (int pass = 0; pass < 3; ++pass) {
      const auto image = LayerRunner::SomeValues(24, static_cast<uint32_t>(pass));
      const std::vector<float> label = {static_cast<float>(pass), 0.5f};
      output.SetInput(0, image);
      output.SetInput(1, label);
      output.Forward();
      images.insert(images.end(), image.begin(), image.end());
      labels.insert(labels.end(), label.begin(), label.end());
      const Hdf5Reader now(folder / "out.h5");  // whole after each pass
      EXPECT_THAT(now.Array("data").dims(), ElementsAre(2 * (pass + 1), 3, 2, 2));
    }
  }
  const Hdf5Reader file(folder / "out.h5");
  EXPECT_THAT(file.Array("data").dims(), ElementsAre(6, 3, 2, 2));
  EXPECT_THAT(file.Array("label").dims(), ElementsAre(6, 1, 1, 1));
  EXPECT_EQ(Floats(file, "data"), images);
  EXPECT_EQ(Floats(file, "label"), labels);
}

TEST(Hdf5OutputTest, RefusesWhatCannotBeWritten) {
  const TempFolder folder;
  const std::string text = Text(folder / "out.h5");
  EXPECT_THAT(RefusalOf("type: \"HDF5Output\"", {{2}, {2}}, {.outputs = 0}),
              HasSubstr("file_name, the file to write, is missing"));
  EXPECT_THAT(RefusalOf(text, {{2, 1, 1, 1, 1}, {2}}, {.outputs = 0}),
              HasSubstr("it has 5 axes; 1 to 4 can be written"));
  EXPECT_THAT(RefusalOf(text, {{2, 3}, {3}}, {.outputs = 0}),
              HasSubstr("data and label differ in their number of rows: 2 3 (6) and 3 (3)"));
  const auto [code, message] = ErrorOf([&] {
    LayerRunner(Text(folder / "none/out.h5"), {{2}, {2}}, {.outputs = 0});
  });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(message, HasSubstr("none/out.h5' does not exist; create it"));
  EXPECT_THAT(folder.Names(), testing::IsEmpty());
}

TEST(Hdf5OutputTest, SaysThatTheDiskIsFull) {
  LayerRunner output(Text("/dev/full"), {{2, 3}, {2}}, {.outputs = 0});
  const auto [code, message] = ErrorOf([&] { output.Forward(); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_THAT(message, HasSubstr("/dev/full: cannot write: No space left on device"));
}

}  // namespace
}  // namespace trainer
