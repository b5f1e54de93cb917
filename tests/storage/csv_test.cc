#include "trainer/storage/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

using Fields = std::vector<std::string>;

class CsvTest : public testing::Test {
 protected:
  std::vector<Fields> ReadCsv(const std::string& text, char separator = ',') {
    CsvReader reader(folder_.Write("t.csv", text), separator);
    std::vector<Fields> records;
    lines_.clear();
    for (Fields fields; reader.Next(&fields);) {
      records.push_back(fields);
      lines_.push_back(reader.line());
    }
    return records;
  }
  std::string Refusal(const std::string& text) {
    const auto [code, message] = ErrorOf([&] { ReadCsv(text); });
    EXPECT_EQ(code, ErrorCode::kData);
    return message;
  }

  TempFolder folder_;
  std::vector<int64_t> lines_;  // line numbers of the records
};

TEST_F(CsvTest, LinesMayEndAsOnAnySystem) {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    EXPECT_THAT(ReadCsv("a,b" + end + "1,2" + end + end + "3,4"),
                ElementsAre(Fields{"a", "b"}, Fields{"1", "2"}, Fields{"3", "4"}));
    EXPECT_THAT(lines_, ElementsAre(1, 2, 4));
  }
}

TEST_F(CsvTest, QuotedFieldsAreThoseOfRfc4180) {
  EXPECT_THAT(
      ReadCsv("\"a,b\",\"say \"\"no\"\"\",\"two\nlines\",\"\"\nx,y,z,\n"),
      ElementsAre(Fields{"a,b", "say \"no\"", "two\nlines", ""}, Fields{"x", "y", "z", ""}));
  EXPECT_THAT(lines_, ElementsAre(1, 3));
}

TEST_F(CsvTest, BlanksAroundFieldsAndAByteOrderMarkAreLeftOut) {
  EXPECT_THAT(ReadCsv("\xef\xbb\xbf a , \"b\" ,c d \n"), ElementsAre(Fields{"a", "b", "c d"}));
}

TEST_F(CsvTest, AnyCharacterMaySeparate) {
  EXPECT_THAT(ReadCsv("1,5;2\n", ';'), ElementsAre(Fields{"1,5", "2"}));
  EXPECT_THAT(ReadCsv("a b\t\tc\n", '\t'), ElementsAre(Fields{"a b", "", "c"}));
  EXPECT_THAT(ReadCsv("  1.5   2 -3  \n4 5 6\n", ' '),
              ElementsAre(Fields{"1.5", "2", "-3"}, Fields{"4", "5", "6"}));
}

TEST_F(CsvTest, FieldsMayCrossTheBorderOfAPart) {
  const std::string longer(1 << 20, 'x');
  EXPECT_THAT(ReadCsv("a," + longer + ",\"" + longer + "\"\nb,c,d"),
              ElementsAre(Fields{"a", longer, longer}, Fields{"b", "c", "d"}));
}

TEST_F(CsvTest, AnEmptyFileHasNoRecord) {
  EXPECT_THAT(ReadCsv(""), testing::IsEmpty());
  EXPECT_THAT(ReadCsv("\n\n"), testing::IsEmpty());
}

TEST_F(CsvTest, RefusesWhatIsNoCsvWithTheLine) {
  EXPECT_THAT(Refusal("a,b\n1,\"x\n2,3\n"),
              HasSubstr("t.csv:2: the quote that begins a field here is not closed"));
  EXPECT_THAT(Refusal("a\n\"x\"y\n"),
              HasSubstr("t.csv:2: text follows the quoted field 'x'; double the quotes"));
  EXPECT_THAT(Refusal(std::string("a\nb\0c\n", 6)),
              HasSubstr("t.csv:2: a zero byte: this is not a text file"));
  EXPECT_THAT(Refusal("\xff\xfe"
                      "a"),
              HasSubstr("t.csv: the file is in UTF-16; save it in UTF-8"));
  EXPECT_THAT(Refusal("a,b\n" + std::string(1'000'000, ',') + "\n"),
              HasSubstr("t.csv:2: more than 1000000 fields"));
  EXPECT_EQ(ErrorOf([&] { CsvReader(folder_ / "none.csv", ','); }).first, ErrorCode::kNoInput);
}

TEST_F(CsvTest, AQuotedFieldReadsBackAsItWas) {
  for (const std::string text : {"a", "", "a,b", "say \"no\"", "two\nlines", " blank "}) {
    const std::string field = QuoteCsvField(text);
    EXPECT_THAT(ReadCsv(field + ",end\n"), ElementsAre(Fields{text, "end"})) << field;
  }
  EXPECT_EQ(QuoteCsvField("a,b", ';'), "a,b");
  EXPECT_EQ(QuoteCsvField("a;b", ';'), "\"a;b\"");
}

}  // namespace
}  // namespace trainer
