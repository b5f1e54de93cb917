#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/in_child.h"
#include "support/layer_runner.h"
#include "support/temp_folder.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Text(const std::string& path) {
  return "type: \"HDF5Output\" hdf5_output_param { file_name: '" + path + "' }";
}

std::vector<float> Floats(const Hdf5Reader& file, const std::string& name) {
  const Hdf5Array array = file.Array(name);
  std::vector<float> values(static_cast<size_t>(array.count()));
  array.Read(std::span<float>(values));
  return values;
}

RunnerOptions Writing(OutputFiles files = OutputFiles::kCreate) {
  return {.outputs = 0, .output_files = files};
}

TEST(Hdf5OutputTest, HandValuesOfTwoPassesStandBehindEachOther) {
  const TempFolder folder;
  std::vector<float> images, labels;
  {
    LayerRunner output(Text(folder / "out.h5"), {{2, 3, 2, 2}, {2}}, Writing());
    EXPECT_THAT(folder.Names(), IsEmpty()) << "nothing was written yet";
    for (int pass = 0; pass < 3; ++pass) {
      const auto image = LayerRunner::SomeValues(24, static_cast<uint32_t>(pass));
      const std::vector<float> label = {static_cast<float>(pass), 0.5f};
      output.SetInput(0, image);
      output.SetInput(1, label);
      output.Forward();
      images.insert(images.end(), image.begin(), image.end());
      labels.insert(labels.end(), label.begin(), label.end());
      const Hdf5Reader now(folder / "out.h5");  // the file is complete after each pass
      EXPECT_THAT(now.Array("data").dims(), ElementsAre(2 * (pass + 1), 3, 2, 2));
    }
  }
  const Hdf5Reader file(folder / "out.h5");
  EXPECT_THAT(file.Array("data").dims(), ElementsAre(6, 3, 2, 2));
  EXPECT_THAT(file.Array("label").dims(), ElementsAre(6, 1, 1, 1));
  EXPECT_EQ(Floats(file, "data"), images);
  EXPECT_EQ(Floats(file, "label"), labels);
}

TEST(Hdf5OutputTest, WritesNothingUnlessTheVerbMay) {
  const TempFolder folder;
  WriteText(folder / "old.h5", "an older file");
  for (const char* name : {"old.h5", "new.h5", "none/out.h5"}) {
    LayerRunner output(Text(folder / name), {{2, 3}, {2}}, {.outputs = 0});
    output.Forward();
    EXPECT_THAT(folder.Names(), ElementsAre("old.h5"));
  }
  LayerRunner output(Text(folder / "new.h5"), {{2, 3}, {2}}, Writing(OutputFiles::kCheckOnly));
  output.Forward();
  EXPECT_THAT(folder.Names(), ElementsAre("old.h5"));
  EXPECT_EQ(ReadText(folder / "old.h5"), "an older file");
}

TEST(Hdf5OutputTest, ReplacesNoFile) {
  const TempFolder folder;
  WriteText(folder / "old.h5", "an older file");
  for (const OutputFiles files : {OutputFiles::kCreate, OutputFiles::kCheckOnly}) {
    const auto [code, message] = ErrorOf([&] {
      LayerRunner(Text(folder / "old.h5"), {{2}, {2}}, Writing(files));
    });
    EXPECT_EQ(code, ErrorCode::kCannotCreate);
    EXPECT_THAT(message, HasSubstr("net.prototxt:3:40: layer 'it' (HDF5Output): '"));
    EXPECT_THAT(message, HasSubstr("old.h5' already exists and is not overwritten; move it away, "
                                   "or give another name with --set "
                                   "layer[it].hdf5_output_param.file_name=..."));
  }
  // The file appears between the check and the first pass.
  LayerRunner late(Text(folder / "late.h5"), {{2}, {2}}, Writing());
  WriteText(folder / "late.h5", "of somebody else");
  const auto [code, message] = ErrorOf([&] { late.Forward(); });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(message, HasSubstr("late.h5: cannot create: File exists; move it away"));
  EXPECT_EQ(ReadText(folder / "old.h5"), "an older file");
  EXPECT_EQ(ReadText(folder / "late.h5"), "of somebody else");
}

TEST(Hdf5OutputTest, ARunThatGoesOnWritesTheNextFile) {
  const TempFolder folder;
  for (int run = 0; run < 3; ++run) {
    LayerRunner output(Text(folder / "out.h5"), {{2, 3}, {2}}, Writing(OutputFiles::kResume));
    output.Forward();
  }
  EXPECT_THAT(folder.Names(), ElementsAre("out.h5", "out_2.h5", "out_3.h5"));
}

TEST(Hdf5OutputTest, TwoLayersDoNotShareAFile) {
  const TempFolder folder;
  LayerRunner output(Text(folder / "out.h5"), {{2}, {2}}, Writing());
  EXPECT_THAT(RefusalOf(Text(folder / "out.h5"), {{2}, {2}}, Writing()),
              HasSubstr("another layer of this run writes '"));
}

TEST(Hdf5OutputTest, RefusesWhatCannotBeWritten) {
  const TempFolder folder;
  const std::string text = Text(folder / "out.h5");
  EXPECT_THAT(RefusalOf("type: \"HDF5Output\"", {{2}, {2}}, {.outputs = 0}),
              HasSubstr("file_name is missing; give the path of the file to write"));
  EXPECT_THAT(RefusalOf(text, {{2, 1, 1, 1, 1}, {2}}, {.outputs = 0}),
              HasSubstr("it has 5 axes, but only 1 to 4 can be written"));
  EXPECT_THAT(RefusalOf(text, {{2, 3}, {3}}, {.outputs = 0}),
              HasSubstr("data and label differ in their number of rows: 2 3 (6) and 3 (3)"));
  const auto [code, message] = ErrorOf([&] {
    LayerRunner(Text(folder / "none/out.h5"), {{2}, {2}}, Writing());
  });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(message, HasSubstr("none/out.h5' does not exist; create it"));
  EXPECT_THAT(folder.Names(), testing::IsEmpty());
}

TEST(Hdf5OutputTest, SaysThatTheDiskIsFull) {
  const TempFolder folder;
  const int status = InChildWithSizeLimit(1 << 10, [&] {
    LayerRunner output(Text(folder / "out.h5"), {{200, 300}, {200}}, Writing());
    const auto [code, message] = ErrorOf([&] { output.Forward(); });
    return code == ErrorCode::kIo && message.find("out.h5: cannot write: ") != std::string::npos
               ? 0
               : 1;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace trainer
