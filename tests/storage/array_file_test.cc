// Tests NumPy files: scripts/golden/tables.py wrote tests/golden/tables.

#include "trainer/storage/array_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "support/error_of.h"
#include "support/source_folder.h"
#include "support/temp_folder.h"
#include "trainer/storage/format.h"
#include "trainer/storage/record_scan.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Pair;

const std::string kTables = SourceFolder() + "/tests/golden/tables/";

std::vector<float> AllOfArray(std::unique_ptr<StoredArray> array) {
  std::vector<float> values(static_cast<size_t>(array->Count()));
  array->ReadRows(0, array->dims().empty() ? 1 : array->dims()[0], values);
  return values;
}

std::vector<float> ReadNpy(const std::string& name) {
  const auto file = OpenArrayFile(kTables + name);
  return AllOfArray(file->Array("data"));
}

// Returns first, first + step, first + 2 * step, ...
std::vector<float> RampOf(size_t count, float step, float first = 0) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + step * static_cast<float>(i);
  return values;
}

std::pair<ErrorCode, std::string> NpyRefusal(const std::string& path,
                                             const std::string& array = "data") {
  return ErrorOf([&] {
    const auto file = OpenArrayFile(path);
    AllOfArray(file->Array(array));
  });
}

TEST(ArrayFileTest, GoldenValuesOfEveryElementTypeAndOrderOfNumpy) {
  EXPECT_EQ(ReadNpy("f4.npy"), RampOf(15, 0.5f));
  EXPECT_EQ(ReadNpy("f8_fortran.npy"), RampOf(24, 0.5f));
  EXPECT_EQ(ReadNpy("f2_big.npy"), RampOf(15, 1));
  EXPECT_EQ(ReadNpy("i8.npy"), RampOf(6, 1, -2));
  EXPECT_EQ(ReadNpy("i2_big.npy"), RampOf(6, 1, -2));
  EXPECT_THAT(ReadNpy("bool.npy"), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(ReadNpy("scalar.npy"), ElementsAre(3));
  const auto file = OpenArrayFile(kTables + "f8_fortran.npy");
  EXPECT_THAT(file->Array("data")->dims(), ElementsAre(4, 3, 2));
  std::vector<float> rows(12);
  file->Array("data")->ReadRows(1, 2, rows);
  EXPECT_EQ(rows, RampOf(12, 0.5f, 3));
}

TEST(ArrayFileTest, AnNpzFileIsReadPackedOrNot) {
  for (const char* name : {"stored.npz", "packed.npz"}) {
    const auto file = OpenArrayFile(kTables + name);
    EXPECT_EQ(AllOfArray(file->Array("x_train")), RampOf(40, 1)) << name;
    EXPECT_TRUE(file->Array("x_train")->may_be_bytes());
    EXPECT_TRUE(file->Has("y_train"));
    EXPECT_FALSE(file->Has("data"));
    const auto renamed = OpenArrayFile(kTables + name + ":x_train,y_train");
    EXPECT_EQ(AllOfArray(renamed->Array("data")), RampOf(40, 1)) << name;
    EXPECT_THAT(AllOfArray(renamed->Array("label")), ElementsAre(0, 1, 2, 0, 1)) << name;
    EXPECT_FALSE(OpenArrayFile(kTables + name + ":x_train")->Has("label"));
  }
}

TEST(ArrayFileTest, TwoNpyFilesAreASetOfRecords) {
  const std::string set = kTables + "images.npy," + kTables + "i8.npy";
  EXPECT_EQ(DetectFormat(set), "NUMPY");
  EXPECT_THAT(FilesOfSet(set), ElementsAre(kTables + "images.npy", kTables + "i8.npy"));
  EXPECT_TRUE(OpenArrayFile(set)->Has("label"));
  EXPECT_FALSE(OpenArrayFile(kTables + "images.npy")->Has("label"));
  RecordScan scan(kTables + "images.npy");
  EXPECT_EQ(scan.Count(), 5);
  EXPECT_THAT(ErrorOf([&] { RecordScan of_both(set); }),
              Pair(ErrorCode::kData, HasSubstr("dataset 'label' has 6 numbers for the 5 rows")));
}

TEST(ArrayFileTest, RefusesWhatHoldsNoNumbers) {
  EXPECT_THAT(NpyRefusal(kTables + "text.npy"),
              Pair(ErrorCode::kData, HasSubstr("text.npy: has elements of the type <U2, which are "
                                               "not numbers; convert it with array.astype")));
  EXPECT_THAT(NpyRefusal(kTables + "objects.npy").second, HasSubstr("the type |O"));
  EXPECT_THAT(NpyRefusal(kTables + "records.npy").second, HasSubstr("the type 'record'"));
  EXPECT_THAT(NpyRefusal(kTables + "stored.npz").second,
              AllOf(HasSubstr("stored.npz: has no array 'data'; it has: x_train, y_train. Name the "
                              "arrays of data and labels as in"),
                    EndsWith("stored.npz:x_train,y_train, or save the array as 'data'")));
  EXPECT_THAT(NpyRefusal(kTables + "stored.npz:x,y_train").second, HasSubstr("has no array 'x'"));
  EXPECT_EQ(NpyRefusal(kTables + "none.npz").first, ErrorCode::kNoInput);
  EXPECT_EQ(NpyRefusal(kTables + "none.npy").first, ErrorCode::kNoInput);
}

TEST(ArrayFileTest, RefusesFilesThatAreCutAtAnyByte) {
  const TempFolder folder;
  for (const std::string name : {"f4.npy", "stored.npz", "packed.npz"}) {
    const std::string whole = ReadText(kTables + name);
    const std::string array = name == "f4.npy" ? "data" : "x_train";
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
      const std::string path = folder.Write("cut_" + name, whole.substr(0, bytes));
      EXPECT_EQ(NpyRefusal(path, array).first, ErrorCode::kData) << name << " " << bytes;
    }
  }
}

TEST(ArrayFileTest, AChangedByteOfAnNpzFileIsFound) {
  const TempFolder folder;
  for (const std::string name : {"stored.npz", "packed.npz"}) {
    std::string bytes = ReadText(kTables + name);
    const size_t middle = bytes.find("x_train.npy") + 140;
    bytes[middle] = static_cast<char>(bytes[middle] ^ 1);
    EXPECT_THAT(NpyRefusal(folder.Write(name, bytes), "x_train"),
                Pair(ErrorCode::kData, HasSubstr("differs from its checksum")));
  }
}

TEST(ArrayFileTest, AShapeThatIsTooLargeIsRefused) {
  const TempFolder folder;
  std::string bytes = ReadText(kTables + "f4.npy");
  const size_t shape = bytes.find("(5, 3)");
  ASSERT_NE(shape, std::string::npos);
  const std::string huge = "(4611686018427387904, 99)";
  bytes.replace(shape, huge.size(), huge);
  EXPECT_THAT(NpyRefusal(folder.Write("huge.npy", bytes)).second, HasSubstr("shape is damaged"));
  bytes.replace(shape, huge.size(), "(400000000000, 3)        ");
  EXPECT_THAT(NpyRefusal(folder.Write("long.npy", bytes)).second, HasSubstr("is truncated"));
}

}  // namespace
}  // namespace trainer
