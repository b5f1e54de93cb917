// Tests folders with a subfolder for each class, as a data set and as the source of ImageData.

#include "trainer/input/class_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_data.h"
#include "support/log_collector.h"
#include "trainer/base/text/text.h"
#include "trainer/input/input_files.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class ClassFoldersTest : public testing::Test {
 protected:
  ClassFoldersTest() {
    Add("dog/b.png", Picture("rgb.png"));
    Add("dog/a.JPG", Picture("rgb.jpg"));
    Add("dog/notes.txt", "text");
    Add("cat/deep/x.png", Picture("rgb.png"));
    Add("cat/y.jpeg", Picture("rgb.jpg"));
    Add(".hidden/z.png", Picture("rgb.png"));
    Add("cat/.z.png", Picture("rgb.png"));
  }
  void Add(const std::string& name, const std::string& bytes) {
    const std::filesystem::path path = folder_ / ("in/" + name);
    std::filesystem::create_directories(path.parent_path());
    WriteBytes(path, bytes);
  }
  const LayerSpec& Layer(const std::string& fields) const {
    return KeptLayer(Join("name: \"d\"\ntype: \"ImageData\" top: \"x\" top: \"y\"\n",
                          "image_data_param { source: \"", folder_ / "in", "\" ", fields, " }"));
  }

  TempFolder folder_;
};

TEST_F(ClassFoldersTest, LabelsAreTheNamesInByteOrder) {
  const ClassFolders found = FindClassFolders(folder_ / "in");
  EXPECT_THAT(found.names, ElementsAre("cat", "dog"));
  EXPECT_THAT(FindClassNames(folder_ / "in"), ElementsAre("cat", "dog"));
  EXPECT_EQ(OthersText(found),
            "Skipped 1 other file (.txt 1); images are .jpg, .jpeg, .png, .tif, .tiff, .pgm and "
            ".ppm");
  std::vector<std::string> lines;
  for (const ListedImage& image : found.images) {
    lines.push_back(image.path + " " + std::to_string(image.label));
  }
  EXPECT_THAT(lines, ElementsAre("cat/deep/x.png 0", "cat/y.jpeg 0", "dog/a.JPG 1", "dog/b.png 1"));
}

TEST_F(ClassFoldersTest, ALinkBackIntoTheFolderIsNotFollowed) {
  std::filesystem::create_directory_symlink(folder_ / "in", folder_ / "in/cat/back");
  EXPECT_EQ(FindClassFolders(folder_ / "in").images.size(), 4u);
}

TEST_F(ClassFoldersTest, RefusesFoldersThatGiveNoLabels) {
  EXPECT_THAT(Catch([&] { FindClassFolders(folder_ / "none"); }),
              Refuses(ErrorCode::kNoInput, "the folder does not exist"));
  EXPECT_THAT(Catch([&] { FindClassFolders(folder_ / "in/dog"); }),
              Refuses(ErrorCode::kData,
                      "the folder has no subfolders, only images; put the images of each"));
  Add("empty/a.txt", "text");
  EXPECT_THAT(Catch([&] { FindClassFolders(folder_ / "in"); }),
              Refuses(ErrorCode::kData, "in/empty: the folder of this class has no JPEG"));
  std::filesystem::create_directories(folder_ / "bare/a");
  EXPECT_THAT(Catch([&] { FindClassFolders(folder_ / "bare", EmptyClasses::kAccept); }),
              Refuses(ErrorCode::kData, "none of the 1 subfolders has JPEG, PNG, TIFF"));
}

TEST_F(ClassFoldersTest, AFolderIsASourceOfImageData) {
  std::filesystem::create_directories(folder_ / "in/ant");  // keeps its number without images
  LogCollector log;
  const auto source = OpenImageList(Layer("batch_size: 4"), {caffe::TRAIN, PhiloxKey{1, 2}, {}});
  EXPECT_EQ(source->shape(), (Shape{4, 3, 7, 11}));
  EXPECT_EQ(source->shape(1), (Shape{4}));
  EXPECT_THAT(Numbers(source->Next().output(1)), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(log.lines, Contains(HasSubstr(Join("3 classes in ", folder_ / "in",
                                                 ": 0 ant, 1 cat, 2 dog; --labels=", folder_ / "in",
                                                 " gives 'predict' their"))));
}

TEST_F(ClassFoldersTest, GoesOnInAFolderBitForBitFromEverySavedPosition) {
  const std::string fields = "batch_size: 3 shuffle: true";
  const auto make = [&] {
    return OpenImageList(Layer(fields), {caffe::TRAIN, PhiloxKey{1, 2}, {}});
  };
  const auto whole = make();
  std::vector<std::string> positions;
  std::vector<std::vector<float>> labels;
  for (int i = 0; i < 8; ++i) {
    positions.push_back(whole->position().Encode());
    labels.push_back(Numbers(whole->Next().output(1)));
  }
  for (size_t i = 0; i < 8; ++i) {
    const auto source = make();
    source->Restore(Position::Decode(positions[i]));
    EXPECT_EQ(Numbers(source->Next().output(1)), labels[i]) << i;
  }
}

TEST_F(ClassFoldersTest, RefusesRootFolderWithAFolder) {
  EXPECT_THAT(Catch([&] {
                OpenImageList(Layer("root_folder: \"x/\""), {caffe::TRAIN, {}, {}});
              }),
              Refuses(ErrorCode::kConfig, "net.prototxt:3:"));
  EXPECT_THAT(Catch([&] {
                OpenImageList(Layer("root_folder: \"x/\""), {caffe::TRAIN, {}, {}});
              }),
              Refuses(ErrorCode::kConfig, "is a folder; remove root_folder"));
}

TEST_F(ClassFoldersTest, InputFilesAreTheImages) {
  const std::optional<InputFiles> files = InputFilesOf(Layer(""));
  EXPECT_EQ(files->root, folder_ / "in/");
  EXPECT_THAT(files->Files(), ElementsAre(folder_ / "in/cat/deep/x.png", folder_ / "in/cat/y.jpeg",
                                          folder_ / "in/dog/a.JPG", folder_ / "in/dog/b.png"));
}

}  // namespace
}  // namespace trainer
