#include "trainer/storage/table_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TableColumn NumberColumn(const std::string& name, double subtract = 0, double multiply = 1,
                         double fill = 0) {
  TableColumn column;
  column.name = name;
  column.subtract = subtract;
  column.multiply = multiply;
  column.fill = fill;
  return column;
}

TableColumn CategoryColumn(const std::string& name, std::vector<std::string> categories) {
  TableColumn column;
  column.name = name;
  column.is_categorical = true;
  column.categories = std::move(categories);
  return column;
}

class TableReaderTest : public testing::Test {
 protected:
  TableReaderTest() {
    format_.inputs = {NumberColumn("size", 1, 10, 5), CategoryColumn("color", {"blue", "red"})};
    format_.labels = {NumberColumn("price"), CategoryColumn("kind", {"cat", "dog"})};
    format_.ignored = {"id"};
  }

  // Returns the stored values of each row, inputs then labels.
  std::vector<std::vector<float>> Encoded(const std::string& text,
                                          TableReaderOptions options = {}) {
    reader_.emplace(folder_.Write("t.csv", text), format_, options);
    std::vector<std::vector<float>> rows;
    ignored_.clear();
    for (TableRow row; reader_->Next(&row);) {
      std::vector<float> values, labels;
      reader_->Encode(row, &values, &labels);
      values.insert(values.end(), labels.begin(), labels.end());
      rows.push_back(values);
      ignored_.push_back(row.ignored);
    }
    return rows;
  }
  std::string Refusal(const std::string& text, TableReaderOptions options = {}) {
    const auto [code, message] = ErrorOf([&] { Encoded(text, options); });
    EXPECT_EQ(code, ErrorCode::kData);
    return message;
  }

  static constexpr char kHeader[] = "size,color,price,kind,id\n";
  static constexpr TableReaderOptions kUnprepared = {.encodes = false};
  static constexpr char kCorrect[] =
      "correct the field, or leave the row out with --bad_records=skip=N";

  TempFolder folder_;
  TableFormat format_;
  std::optional<TableReader> reader_;
  std::vector<std::vector<std::string>> ignored_;
};

TEST_F(TableReaderTest, ARowIsStoredAsTheFormatSays) {
  EXPECT_THAT(Encoded(std::string(kHeader) + "2,red,7.5,dog,a\n+1e0,blue,-1,cat,b\n"),
              ElementsAre(ElementsAre(10, 0, 1, 7.5, 1), ElementsAre(0, 1, 0, -1, 0)));
  EXPECT_THAT(ignored_, ElementsAre(ElementsAre("a"), ElementsAre("b")));
}

TEST_F(TableReaderTest, ColumnsAreFoundByNameInAnyOrderAndOthersDoNotMatter) {
  EXPECT_THAT(Encoded("kind,more,color,size,price\ndog,?,red,2,7\n"),
              ElementsAre(ElementsAre(10, 0, 1, 7, 1)));
  EXPECT_THAT(reader_->ignored_names(), IsEmpty());
}

TEST_F(TableReaderTest, WithoutAHeaderColumnsAreNumbers) {
  format_.has_header = false;
  format_.inputs = {NumberColumn("2"), NumberColumn("1")};
  format_.labels = {NumberColumn("3")};
  EXPECT_THAT(Encoded("1,2,3\n4,5,6\n"), ElementsAre(ElementsAre(2, 1, 3), ElementsAre(5, 4, 6)));
  EXPECT_THAT(ReadTableHeader(folder_ / "t.csv", ',', false), ElementsAre("1", "2", "3"));
  EXPECT_THAT(ReadTableHeader(folder_.Write("p.csv", ",a,\n1,2,3"), ',', true),
              ElementsAre("1", "a", "3"));
}

TEST_F(TableReaderTest, TruthValuesAreNumbers) {
  EXPECT_THAT(Encoded(std::string(kHeader) + "True,red,FALSE,dog,a\n"),
              ElementsAre(ElementsAre(0, 0, 1, 0, 1)));
}

TEST_F(TableReaderTest, EmptyFieldsAreRefusedFilledOrLeftOut) {
  const std::string rows = std::string(kHeader) + "2,red,7,dog,a\n?,NA,8,cat,b\n,red,nan,cat,c\n";
  EXPECT_THAT(Refusal(rows, kUnprepared),
              HasSubstr("t.csv:3: column 'size' has no value ('?'); say what takes its place: "
                        "--missing=mean, zero, or skip to leave the row out"));
  EXPECT_THAT(Refusal(rows),
              HasSubstr(Join("t.csv:3: column 'size' has no value ('?'); ", kCorrect)));
  for (const MissingValue missing : {MissingValue::kMean, MissingValue::kZero}) {
    format_.missing = missing;
    EXPECT_THAT(Encoded(rows.substr(0, rows.find(",red,nan"))),
                ElementsAre(ElementsAre(10, 0, 1, 7, 1), ElementsAre(40, 0, 0, 8, 0)));
    EXPECT_THAT(Refusal(rows, kUnprepared),
                HasSubstr("t.csv:4: column 'price' is a label and has no value ('nan'); leave such "
                          "rows out with --missing=skip"));
    EXPECT_THAT(Refusal(rows), HasSubstr(Join("is a label and has no value ('nan'); ", kCorrect)));
  }
  format_.missing = MissingValue::kSkip;
  EXPECT_THAT(Encoded(rows), ElementsAre(ElementsAre(10, 0, 1, 7, 1)));
  EXPECT_EQ(reader_->skipped(), 2);
}

TEST_F(TableReaderTest, BadRowsAreNamedOrLeftOut) {
  const std::string good = std::string(kHeader) + "2,red,7,dog,a\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"2,red,7,dog\n",
       "t.csv:3: the row has 4 fields, but the header has 5; quote fields that "
       "contain the separator ','"},
      {"two,red,7,dog,a\n",
       Join("t.csv:3: column 'size' has 'two', which is not a number; ", kCorrect)},
      {"\"1,5\",red,7,dog,a\n", "column 'size' has '1,5', which is not a number"},
      {"inf,red,7,dog,a\n",
       "t.csv:3: column 'size' has 'inf', which is too large for a 32-bit "
       "float"},
      {"1e39,red,7,dog,a\n", "'1e39', which is too large"},
      {"2,r\xfcn,7,dog,a\n", "t.csv:3: column 'color' has a text that is not UTF-8; convert"},
      {"2,red,7,eel,a\n",
       "t.csv:3: column 'kind' is a label and has the new category 'eel'; the "
       "known ones are: cat, dog"}};
  for (const auto& [row, message] : cases) {
    EXPECT_THAT(Refusal(good + row), HasSubstr(message));
    EXPECT_THAT(Encoded(good + row + "2,red,8,cat,a\n", {.most_bad = 1}), testing::SizeIs(2));
    EXPECT_EQ(reader_->bad(), 1);
    EXPECT_EQ(ErrorOf([&] { Encoded(good + row + row, {.most_bad = 1}); }).first, ErrorCode::kData);
  }
}

TEST_F(TableReaderTest, FlagsAreAdvisedOnlyForColumnsThatTheyCanChange) {
  EXPECT_THAT(
      Refusal(std::string(kHeader) + "two,red,7,dog,a\n", kUnprepared),
      HasSubstr("t.csv:2: column 'size' has 'two', which is not a number; if it is a "
                "category, give --categorical=size, or leave the column out with --ignore"));
}

TEST_F(TableReaderTest, NewCategoriesOfInputsAreCountedAndHaveNoInput) {
  EXPECT_THAT(Encoded(std::string(kHeader) + "2,green,7,dog,a\n2,red,7,dog,b\n2,pink,7,dog,c\n"),
              ElementsAre(ElementsAre(10, 0, 0, 7, 1), ElementsAre(10, 0, 1, 7, 1),
                          ElementsAre(10, 0, 0, 7, 1)));
  ASSERT_EQ(reader_->unknown().size(), 1u);
  EXPECT_EQ(reader_->unknown()[0].column, "color");
  EXPECT_EQ(reader_->unknown()[0].first, "green");
  EXPECT_EQ(reader_->unknown()[0].first_line, 2);
  EXPECT_EQ(reader_->unknown()[0].rows, 2);
}

TEST_F(TableReaderTest, LabelsMayBeMissingWhereTheyAreNotRead) {
  EXPECT_THAT(Encoded("color,size\nred,2\n", {.labels = false}),
              ElementsAre(ElementsAre(10, 0, 1)));
}

TEST_F(TableReaderTest, RefusesATableWithoutAColumnAndANameThatIsThereTwice) {
  EXPECT_THAT(Refusal("size,colour,price,kind\n"),
              HasSubstr("t.csv:1: the table has no column 'color', which is an input. Did you mean "
                        "'colour'? It has: size, colour, price, kind"));
  EXPECT_THAT(Refusal("size,color,kind\n"), HasSubstr("no column 'price', which is a label."));
  EXPECT_THAT(Refusal("size,color,size\n"),
              HasSubstr("t.csv:1: two columns are named 'size'; rename one"));
  EXPECT_THAT(Refusal(""), HasSubstr("t.csv: the table is empty; write a header and rows"));
  EXPECT_THAT(Refusal("gr\xfcn,b\n"), HasSubstr("t.csv:1: the name of column 1 has a text that is "
                                                "not UTF-8"));
}

}  // namespace
}  // namespace trainer
