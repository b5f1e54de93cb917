#include "trainer/storage/table_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/protobuf_maps.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(TableFormatTest, AFormatReadsBackBitForBit) {
  TRAINER_READS_JSON();
  const TempFolder folder;
  TableFormat format;
  format.separator = ';';
  format.has_header = false;
  format.missing = MissingValue::kMean;
  TableColumn number, color, label;
  number.name = "a \"b\"";
  number.subtract = 0.1;
  number.multiply = 1 / 3.0;
  number.fill = -1e-17;
  color.name = "color";
  color.is_categorical = true;
  color.categories = {"", "gr\xc3\xbcn"};
  label.name = "y";
  format.inputs = {number, color};
  format.labels = {label};
  format.ignored = {"id", "7"};
  EXPECT_EQ(format.InputCount(), 3);
  WriteTableFormat(TableFormatPath(folder / "train.h5"), format);
  EXPECT_THAT(folder.Names(), ElementsAre("train.h5.columns.json"));
  for (const std::string set : {"train.h5", "train.h5.columns.json"}) {
    const TableFormat read = ReadTableFormat(folder / set);
    EXPECT_EQ(read.separator, ';');
    EXPECT_FALSE(read.has_header);
    EXPECT_EQ(read.missing, MissingValue::kMean);
    ASSERT_EQ(read.inputs.size(), 2u);
    EXPECT_EQ(read.inputs[0].name, "a \"b\"");
    EXPECT_EQ(read.inputs[0].subtract, 0.1);
    EXPECT_EQ(read.inputs[0].multiply, 1 / 3.0);
    EXPECT_EQ(read.inputs[0].fill, -1e-17);
    EXPECT_FALSE(read.inputs[0].is_categorical);
    EXPECT_TRUE(read.inputs[1].is_categorical);
    EXPECT_THAT(read.inputs[1].categories, ElementsAre("", "gr\xc3\xbcn"));
    ASSERT_EQ(read.labels.size(), 1u);
    EXPECT_EQ(read.labels[0].multiply, 1);
    EXPECT_THAT(read.ignored, ElementsAre("id", "7"));
  }
}

TEST(TableFormatTest, RefusesASetWithoutColumnsAndADamagedFile) {
  TRAINER_READS_JSON();
  const TempFolder folder;
  EXPECT_THAT(ErrorOf([&] { ReadTableFormat(folder / "train.h5"); }),
              Pair(ErrorCode::kNoInput,
                   HasSubstr("train.h5.columns.json: this file is missing, which 'trainer dataset "
                             "csv' writes next to a set")));
  for (const char* text : {"", "[]", "{\"inputs\": 3}", "{\"inputs\": [", "{}"}) {
    folder.Write("train.h5.columns.json", text);
    EXPECT_THAT(ErrorOf([&] { ReadTableFormat(folder / "train.h5"); }),
                Pair(ErrorCode::kData, HasSubstr("does not describe the columns of a table")))
        << text;
  }
}

TEST(TableFormatTest, ASeparatorIsOneCharacterOrAName) {
  EXPECT_EQ(ParseSeparator(","), ',');
  EXPECT_EQ(ParseSeparator("tab"), '\t');
  EXPECT_EQ(ParseSeparator("\\t"), '\t');
  EXPECT_EQ(ParseSeparator("space"), ' ');
  for (const char* text : {"", "ab", "\"", ".", "-"}) {
    EXPECT_THAT(ErrorOf([&] { ParseSeparator(text); }),
                Pair(ErrorCode::kUsage, HasSubstr("give one character, such as ',' or ';'")))
        << text;
  }
}

}  // namespace
}  // namespace trainer
