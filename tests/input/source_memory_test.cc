// Tests the files of MemoryData.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "storage/test_data.h"
#include "trainer/base/text/text.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

using testing::ElementsAre;

class MemoryRecordsTest : public testing::Test {
 protected:
  // Opens a source of 1x1x2 images.
  std::unique_ptr<BatchQueue> Make(const std::string& fields, const std::string& transform = "",
                                   Rank rank = {}) const {
    InputEnv env{caffe::TRAIN, {1, 2}, rank, 1};
    return OpenMemory(
        KeptLayer(
            "name: 'd' type: 'MemoryData' top: 'x' top: 'y' memory_data_param { batch_size: 2 "
            "channels: 1 height: 1 width: 2 " +
            fields + " } transform_param { " + transform + " }"),
        env);
  }
  std::string Source(const std::string& bytes) const {
    WriteBytes(folder_ / "images", bytes);
    return "source: '" + (folder_ / "images") + "' ";
  }
  std::string Labels(const std::string& text) const {
    WriteBytes(folder_ / "labels", text);
    return "labels: '" + (folder_ / "labels") + "' ";
  }

  TempFolder folder_;
};

TEST_F(MemoryRecordsTest, GivesImagesAndLabelsInTheirOrderAgainAndAgain) {
  const auto source = Make(Source("abcdef") + Labels("5\n-6\n7\n"), "scale: 2 mean_value: 97");
  const Batch& first = source->Next();
  EXPECT_EQ(Numbers(first.output(0)), (std::vector<float>{0, 2, 4, 6}));
  EXPECT_EQ(Numbers(first.output(1)), (std::vector<float>{5, -6}));
  EXPECT_EQ(Numbers(source->Next().output(1)), (std::vector<float>{7, 5}));
  EXPECT_EQ(source->position(), (Position{4, 1, "image 1 of 3"}));
  const auto resumed = Make(Source("abcdef") + Labels("5\n-6\n7\n"));
  resumed->Restore(source->position());
  EXPECT_EQ(Numbers(resumed->Next().output(1)), (std::vector<float>{-6, 7}));
}

TEST_F(MemoryRecordsTest, LabelsAreZeroWhereThereAreNone) {
  EXPECT_EQ(Numbers(Make(Source("abcdef"))->Next().output(1)), (std::vector<float>{0, 0}));
}

TEST_F(MemoryRecordsTest, ReadsTheStandardInput) {
  WriteBytes(folder_ / "in", "abcd");
  const int kept = dup(STDIN_FILENO), file = open((folder_ / "in").c_str(), O_RDONLY);
  dup2(file, STDIN_FILENO);
  const auto source = Make("source: '-'");
  dup2(kept, STDIN_FILENO);
  close(kept);
  close(file);
  EXPECT_EQ(Numbers(source->Next().output(0)), (std::vector<float>{'a', 'b', 'c', 'd'}));
  EXPECT_THAT(Catch([&] {
                Make("source: '-'", "", Rank{0, 2});
              }),
              Refuses(ErrorCode::kConfig, "several ranks cannot share the standard input"));
}

TEST_F(MemoryRecordsTest, RefusesFilesThatDoNotFit) {
  EXPECT_THAT(Catch([&] { Make(Source("abc")); }),
              Refuses(ErrorCode::kData, "3 bytes are not a multiple of the image size, 2 bytes"));
  EXPECT_THAT(Catch([&] { Make(Source("")); }), Refuses(ErrorCode::kData, "0 bytes are not a"));
  EXPECT_THAT(Catch([&] { Make(Source("abcd") + Labels("1\n")); }),
              Refuses(ErrorCode::kData, "1 labels for 2 images"));
  EXPECT_THAT(Catch([&] { Make(Source("abcd") + Labels("1\n2.5\n")); }),
              Refuses(ErrorCode::kData, "label 2 is not a 32-bit integer"));
  EXPECT_THAT(Catch([&] { Make("source: 'nothing'"); }),
              Refuses(ErrorCode::kNoInput, "source 'nothing' does not exist"));
  EXPECT_THAT(Catch([&] { Make("labels: 'l'"); }),
              Refuses(ErrorCode::kConfig, "labels is given without source"));
  const auto source = Make(Source("abcdef"));
  EXPECT_THAT(Catch([&] {
                source->Restore({1, 0, "image 1 of 4"});
              }),
              Refuses(ErrorCode::kBadSnapshot, "which is not in this data set"));
}

}  // namespace
}  // namespace trainer
