#include "trainer/datasets/from_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/file/file.h"
#include "trainer/storage/array_file.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::vector<float> ReadTextArray(const std::string& path, const std::string& name) {
  const auto file = OpenArrayFile(path);
  const auto array = file->Array(name);
  std::vector<float> values(static_cast<size_t>(array->Count()));
  array->ReadRows(0, array->dims()[0], values);
  return values;
}

class FromTextTest : public testing::Test {
 protected:
  TextOptions Options(const std::string& text, int64_t length,
                      const std::string& output = "train.h5") const {
    TextOptions options;
    options.text = folder_.Write("t.txt", text);
    options.output = folder_ / output;
    options.length = length;
    return options;
  }
  void ExpectRefused(const TextOptions& options, ErrorCode code, const std::string& part) const {
    EXPECT_THAT(ErrorOf([&] { WriteTextRecords(options); }), Pair(code, HasSubstr(part)));
    EXPECT_THAT(folder_.Names(), ElementsAre("t.txt"));
  }

  TempFolder folder_;
};

TEST_F(FromTextTest, LabelsAreTheNextCharacters) {
  for (const char* const name : {"train.h5", "train.npz"}) {
    const TextResult result = WriteTextRecords(Options("abcdefgh\xff", 4, name));
    EXPECT_EQ(result.records, 2);
    EXPECT_EQ(result.left_out, 0);
    const std::string path = folder_ / name;
    EXPECT_THAT(ReadTextArray(path, "data"), ElementsAre(97, 98, 99, 100, 101, 102, 103, 104));
    EXPECT_THAT(ReadTextArray(path, "label"), ElementsAre(98, 99, 100, 101, 102, 103, 104, 255));
    EXPECT_THAT(OpenArrayFile(path)->Array("data")->dims(), ElementsAre(2, 4));
  }
  EXPECT_EQ(ReadFile(folder_ / "train.txt", 100), "train.h5\n");
}

TEST_F(FromTextTest, ValidationIsTheEndOfTheText) {
  TextOptions options = Options("0123456789ABC", 3);
  options.validation.count = 1;
  const TextResult result = WriteTextRecords(options);
  EXPECT_EQ(result.records, 3);
  EXPECT_EQ(result.validation_records, 1);
  EXPECT_EQ(result.validation_path, folder_ / "val.h5");
  EXPECT_THAT(ReadTextArray(folder_ / "val.h5", "data"), ElementsAre('9', 'A', 'B'));
  EXPECT_THAT(ReadTextArray(folder_ / "val.h5", "label"), ElementsAre('A', 'B', 'C'));
  EXPECT_EQ(ReadTextArray(folder_ / "train.h5", "label").back(), '9');
  EXPECT_EQ(ReadFile(folder_ / "val.txt", 100), "val.h5\n");
}

TEST_F(FromTextTest, CountsWhatDoesNotFillARecord) {
  EXPECT_EQ(WriteTextRecords(Options("0123456789", 4)).left_out, 1);
}

TEST_F(FromTextTest, RefusesATextShorterThanARecord) {
  ExpectRefused(Options("abcd", 4), ErrorCode::kData,
                "the text has 4 characters, but a record needs 5: --length and the one to predict; "
                "use a longer text or a lower --length");
  ExpectRefused(Options("", 4), ErrorCode::kData, "the text has 0 characters");
}

TEST_F(FromTextTest, RefusesAValidationSetThatLeavesNothing) {
  TextOptions options = Options("abcdefgh", 2);
  options.validation.count = 3;
  ExpectRefused(options, ErrorCode::kUsage,
                "--val: 3 of 3 records were requested; it must be 1 to 2");
  options.length = 7;
  ExpectRefused(options, ErrorCode::kUsage,
                "--val: the text has 1 record only; use a longer text or a lower --length");
}

TEST_F(FromTextTest, RefusesNamesThatAreTaken) {
  ExpectRefused(Options("abcdefgh", 2, "t.h5"), ErrorCode::kUsage,
                "t.txt, which is the text; choose another name");
  TextOptions options = Options("abcdefgh", 2);
  options.validation.count = 1;
  options.validation_path = options.output;
  ExpectRefused(options, ErrorCode::kUsage, "would be one set; choose another name");
  options.validation_path = folder_ / "train.hdf5";  // the list is train.txt too
  ExpectRefused(options, ErrorCode::kUsage, "would be one set; choose another name");
}

TEST_F(FromTextTest, DoesNotOverwriteASet) {
  const TextOptions options = Options("abcdefgh", 2);
  WriteTextRecords(options);
  EXPECT_THAT(ErrorOf([&] { WriteTextRecords(options); }),
              Pair(ErrorCode::kCannotCreate, HasSubstr("already exists and is not overwritten")));
}

TEST_F(FromTextTest, RefusesOtherKindsOfSets) {
  for (const char* const name : {"train_lmdb", "train.tar", "train.npy"}) {
    ExpectRefused(
        Options("abcdefgh", 2, name), ErrorCode::kUsage,
        "a text is written to an HDF5 file (NAME.h5), which HDF5Data reads, or to NumPy's "
        "format (NAME.npz)");
  }
}

TEST_F(FromTextTest, NamesAMissingText) {
  TextOptions options = Options("abcdefgh", 2);
  options.text = folder_ / "none.txt";
  ExpectRefused(options, ErrorCode::kNoInput, "none.txt");
}

}  // namespace
}  // namespace trainer
