// Tests small tables, and the tables of tests/golden/tables with the values that NumPy reads from
// them (scripts/golden/tables.py).

#include "trainer/datasets/from_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_data.h"
#include "support/error_of.h"
#include "support/source_folder.h"
#include "support/temp_folder.h"
#include "trainer/datasets/verify.h"
#include "trainer/storage/array_file.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/record_scan.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::Pointwise;

const std::string kGoldenTables = SourceFolder() + "/tests/golden/tables/";

struct Stored {
  std::vector<int64_t> dims;
  std::vector<float> values;
};

Stored ReadStored(const std::string& path, const std::string& name) {
  const auto file = OpenArrayFile(path);
  const auto array = file->Array(name);
  Stored stored{array->dims(), std::vector<float>(static_cast<size_t>(array->Count()))};
  array->ReadRows(0, array->dims()[0], stored.values);
  return stored;
}

class FromCsvTest : public testing::Test {
 protected:
  CsvOptions Options(const std::string& text, std::vector<std::string> labels,
                     const std::string& output = "set.h5") const {
    CsvOptions options;
    options.table = folder_.Write("t.csv", text);
    options.output.path = folder_ / output;
    options.labels = std::move(labels);
    return options;
  }
  void ExpectRefused(const CsvOptions& options, ErrorCode code, const std::string& part) const {
    EXPECT_THAT(ErrorOf([&] { WriteCsv(options); }), Pair(code, HasSubstr(part)));
    EXPECT_THAT(folder_.Names(), testing::Not(Contains("set.h5")));
    EXPECT_THAT(folder_.Names(), testing::Not(Contains("set")));
  }

  TempFolder folder_;
};

TEST_F(FromCsvTest, GoldenValuesOfScalesAndMissingValues) {
  const std::pair<const char*, TableScale> scales[] = {
      {"none", TableScale::kNone}, {"minmax", TableScale::kMinMax}, {"znorm", TableScale::kZNorm}};
  const std::pair<const char*, MissingValue> missing[] = {
      {"mean", MissingValue::kMean}, {"zero", MissingValue::kZero}, {"skip", MissingValue::kSkip}};
  int compared = 0;
  for (const auto& [scale_name, scale] : scales) {
    for (const auto& [missing_name, value] : missing) {
      const std::string name = std::string(scale_name) + "_" + missing_name + ".npz";
      if (!Exists(kGoldenTables + name)) continue;
      CsvOptions options;
      options.table = kGoldenTables + "table.csv";
      options.output.path = folder_ / name;
      options.labels = {"price", "kind"};
      options.ignored = {"id"};
      options.categorical = {"color", "kind"};
      options.scale = scale;
      options.scale_labels = scale != TableScale::kNone;
      options.missing = value;
      WriteCsv(options);
      for (const char* array : {"data", "label"}) {
        const Stored got = ReadStored(folder_ / name, array);
        const Stored want = ReadStored(kGoldenTables + name, array);
        EXPECT_EQ(got.dims, want.dims) << name;
        EXPECT_THAT(got.values, Pointwise(testing::FloatNear(1e-6f), want.values)) << name;
      }
      ++compared;
    }
  }
  EXPECT_EQ(compared, 6);
}

TEST_F(FromCsvTest, OneLabelIsOneNumberAndSeveralAreARow) {
  WriteCsv(Options("a,y,b\n1,2,3\n4,5,6\n", {"y"}, "one.h5"));
  EXPECT_THAT(ReadStored(folder_ / "one.h5", "data").dims, ElementsAre(2, 2));
  EXPECT_THAT(ReadStored(folder_ / "one.h5", "data").values, ElementsAre(1, 3, 4, 6));
  EXPECT_THAT(ReadStored(folder_ / "one.h5", "label").dims, ElementsAre(2));
  EXPECT_EQ(ReadText(folder_ / "one.txt"), "one.h5\n");
  WriteCsv(Options("a,y,b\n1,2,3\n4,5,6\n", {"b", "y"}, "two.npz"));
  EXPECT_THAT(ReadStored(folder_ / "two.npz", "label").dims, ElementsAre(2, 2));
  EXPECT_THAT(ReadStored(folder_ / "two.npz", "label").values, ElementsAre(3, 2, 6, 5));
  EXPECT_THAT(folder_.Names(), ElementsAre("one.h5", "one.h5.columns.json", "one.txt", "t.csv",
                                           "two.npz", "two.npz.columns.json"));
}

TEST_F(FromCsvTest, ADatabaseHasARecordPerRow) {
  for (const std::string backend : {"LMDB", "LEVELDB"}) {
    CsvOptions options = Options("a,y,b\n1,cat,3\n4,dog,6\n", {"y"}, backend);
    options.output.backend = backend;
    options.categorical = {"y"};
    EXPECT_EQ(WriteCsv(options).records, 2);
    RecordScan scan(folder_ / backend);
    StoredRecord record;
    ASSERT_TRUE(scan.Next(&record));
    ASSERT_TRUE(scan.Next(&record));
    EXPECT_EQ(record.key, "00000001");
    DatumParser parser;
    const DatumView& view = parser.Parse("set", record.key, record.value);
    EXPECT_EQ(view.ShapeText(), "2x1x1");
    EXPECT_THAT(view.floats, ElementsAre(4, 6));
    EXPECT_EQ(view.label, 1);
    EXPECT_EQ(VerifyRecords(folder_ / backend).bad, 0);
  }
}

TEST_F(FromCsvTest, TestDataIsStoredAsTheTrainingDataWas) {
  CsvOptions options = Options("a,c,y\n0,x,1\n10,z,2\n", {"y"}, "train.h5");
  options.scale = TableScale::kMinMax;
  options.scale_labels = true;
  options.categorical = {"c"};
  WriteCsv(options);
  CsvOptions test = Options("y,c,a\n3,z,5\n1,w,-10\n", {}, "test.h5");
  test.like = folder_ / "train.h5";
  const CsvResult result = WriteCsv(test);
  EXPECT_THAT(ReadStored(folder_ / "test.h5", "data").values, ElementsAre(.5, 0, 1, -1, 0, 0));
  EXPECT_THAT(ReadStored(folder_ / "test.h5", "label").values, ElementsAre(2, 0));
  ASSERT_EQ(result.unknown.size(), 1u);
  EXPECT_EQ(result.unknown[0].first, "w");
  EXPECT_EQ(ReadText(folder_ / "test.h5.columns.json"),
            ReadText(folder_ / "train.h5.columns.json"));
}

TEST_F(FromCsvTest, CategoriesAreInTheOrderOfTheirNumbersOrBytes) {
  CsvOptions options = Options("a,b,y\n10,10,1\n9,x,1\n-1,9,1\n", {"y"});
  options.categorical = {"a", "b"};
  const TableFormat format = WriteCsv(options).format;
  EXPECT_THAT(format.inputs[0].categories, ElementsAre("-1", "9", "10"));
  EXPECT_THAT(format.inputs[1].categories, ElementsAre("10", "9", "x"));
}

TEST_F(FromCsvTest, ValidationRowsHaveTheSameShareOfEachClassAndNoPartInTheScale) {
  std::string text = "a,kind\n";
  for (int i = 0; i < 100; ++i) text += std::to_string(i) + (i % 4 == 0 ? ",cat\n" : ",dog\n");
  CsvOptions options = Options(text, {"kind"}, "train.h5");
  options.categorical = {"kind"};
  options.scale = TableScale::kZNorm;
  options.validation = ParseSplit("val", "20%");
  const CsvResult result = WriteCsv(options);
  EXPECT_EQ(result.records, 80);
  EXPECT_EQ(result.validation_records, 20);
  EXPECT_EQ(result.validation_path, folder_ / "val.h5");
  const std::vector<float> cats = ReadStored(folder_ / "val.h5", "label").values;
  EXPECT_EQ(std::ranges::count(cats, 0.0f), 5);
  const std::vector<float> values = ReadStored(folder_ / "train.h5", "data").values;
  double sum = 0, squares = 0;
  for (const float value : values) sum += value;
  for (const float value : values) squares += double{value} * value;
  EXPECT_NEAR(sum / 80, 0, 1e-6);
  EXPECT_NEAR(squares / 80, 1, 1e-6);
  EXPECT_EQ(ReadText(folder_ / "val.h5.columns.json"), ReadText(folder_ / "train.h5.columns.json"));
  CsvOptions again = options;
  again.output.path = folder_ / "again.h5";
  again.validation_path = folder_ / "again_val.h5";
  WriteCsv(again);
  EXPECT_EQ(ReadStored(folder_ / "again.h5", "data").values, values) << "the same seed";
}

TEST_F(FromCsvTest, RefusesOptionsThatContradict) {
  const std::string text = "a,b,y\n1,2,3\n";
  ExpectRefused(Options(text, {}), ErrorCode::kUsage,
                "give the column of the labels with --label=NAME, or --like=SET");
  ExpectRefused(Options(text, {"z"}), ErrorCode::kUsage,
                "--label: " + folder_ / "t.csv" + " has no column 'z'.");
  CsvOptions options = Options(text, {"y"});
  options.ignored = {"y"};
  ExpectRefused(options, ErrorCode::kUsage, "column 'y' is in --label and in --ignore");
  options.ignored = {"a", "b"};
  ExpectRefused(options, ErrorCode::kUsage, "no column is left for the inputs");
  options.ignored = {};
  options.scale_labels = true;
  ExpectRefused(options, ErrorCode::kUsage, "--scale_labels needs --scale=minmax or --scale=znorm");
  options.scale_labels = false;
  options.like = folder_ / "train.h5";
  ExpectRefused(options, ErrorCode::kUsage, "--like takes the columns as");
  ExpectRefused(Options("a;b;y\n1;2;3\n", {"y"}), ErrorCode::kUsage,
                "If another character separates columns, give --separator");
  options = Options(text, {"y"}, "set.tar");
  ExpectRefused(options, ErrorCode::kUsage, "rows of numbers go to an HDF5 file (NAME.h5)");
}

TEST_F(FromCsvTest, ADatabaseHoldsSeveralLabelsAndFractions) {
  const auto labels = [&](const std::string& name) {
    StoredRecord record;
    EXPECT_TRUE(RecordScan(folder_ / name).Next(&record));
    DatumParser parser;
    const std::span<const float> stored = parser.Parse("set", record.key, record.value).labels;
    return std::vector<float>(stored.begin(), stored.end());
  };
  WriteCsv(Options("a,y,z\n1,2,3\n", {"y", "z"}, "several"));
  EXPECT_THAT(labels("several"), ElementsAre(2, 3));
  WriteCsv(Options("a,y\n1,2.5\n", {"y"}, "fraction"));
  EXPECT_THAT(labels("fraction"), ElementsAre(2.5f));
}

TEST_F(FromCsvTest, RefusesTablesThatCannotBeStored) {
  ExpectRefused(Options("a,y\n", {"y"}), ErrorCode::kData,
                "t.csv: the table has no rows that can be used");
  CsvOptions empty = Options("a,b,y\n,1,2\n", {"y"});
  empty.missing = MissingValue::kMean;
  ExpectRefused(empty, ErrorCode::kData, "column 'a' has no value in any row");
  std::string many = "a,y\n";
  for (int i = 0; i <= 10000; ++i) many += "n" + std::to_string(i) + ",1\n";
  CsvOptions options = Options(many, {"y"});
  options.categorical = {"a"};
  ExpectRefused(options, ErrorCode::kData, "column 'a' has more than 10000 categories");
  WriteBytes(folder_ / "old.h5", "old");
  EXPECT_THAT(ErrorOf([&] { WriteCsv(Options("a,y\n1,2\n", {"y"}, "old.h5")); }),
              Pair(ErrorCode::kCannotCreate, HasSubstr("already exists")));
}

}  // namespace
}  // namespace trainer
