#include "evaluate/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "support/error_of.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class RecordFileTest : public testing::Test {
 protected:
  // Writes rows of one target and two outputs, or of two targets.
  std::string Write(const std::string& name, TargetKind kind,
                    const std::vector<std::pair<std::vector<float>, std::vector<float>>>& rows) {
    Comparison comparison;
    comparison.kind = kind;
    comparison.columns = 2;
    const std::string path = folder_ / name;
    const std::unique_ptr<RecordFile> file = OpenRecordFile(path, comparison);
    for (const auto& [targets, outputs] : rows) file->Add(targets, outputs);
    EXPECT_FALSE(std::filesystem::exists(path)) << "before it is complete";
    file->Finish();
    return path;
  }

  TempFolder folder_;
};

TEST_F(RecordFileTest, ATableHasARowForEachRecord) {
  EXPECT_EQ(ReadText(Write("c.csv", TargetKind::kClasses,
                           {{{1}, {0.25f, 0.75f}}, {{NAN}, {1, 0}}, {{0}, {0, 0}}})),
            "record,label,answer,p0,p1\n0,1,1,0.25,0.75\n1,,0,1,0\n2,0,0,0.5,0.5\n");
  EXPECT_EQ(ReadText(Write("l.csv", TargetKind::kLabels, {{{1, NAN}, {0, -2}}})),
            "record,t0,t1,p0,p1\n0,1,,0.5,0.11920292\n");
  EXPECT_EQ(ReadText(Write("n.csv", TargetKind::kNumbers, {{{1.5f, 2}, {-1, 1e-9f}}})),
            "record,t0,t1,y0,y1\n0,1.5,2,-1,1e-09\n");
}

TEST_F(RecordFileTest, AJsonFileHasALineForEachRecord) {
  EXPECT_EQ(
      ReadText(Write("c.jsonl", TargetKind::kClasses, {{{1}, {0.25f, 0.75f}}, {{NAN}, {1, 0}}})),
      "{\"record\": 0, \"label\": 1, \"answer\": 1, \"probabilities\": [0.25, 0.75]}\n"
      "{\"record\": 1, \"label\": null, \"answer\": 0, \"probabilities\": [1, 0]}\n");
  EXPECT_EQ(ReadText(Write("n.jsonl", TargetKind::kNumbers, {{{1.5f, 2}, {-1, 3}}})),
            "{\"record\": 0, \"targets\": [1.5, 2], \"outputs\": [-1, 3]}\n");
}

TEST_F(RecordFileTest, AnNpzFileIsWritten) {
  EXPECT_THAT(ReadText(Write("c.npz", TargetKind::kClasses, {{{1}, {0.25f, 0.75f}}})),
              StartsWith("PK"));
}

TEST_F(RecordFileTest, WithoutFinishNoFileIsLeft) {
  { OpenRecordFile(folder_ / "x.csv", {}); }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "."));
}

TEST_F(RecordFileTest, RefusesOtherNames) {
  const auto [code, message] = ErrorOf([] { RequireRecordFormat("a.txt"); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(message, HasSubstr("--predictions=a.txt: the name must end in .csv (a table), .jsonl "
                                 "(a line of JSON per record) or .npz (arrays for NumPy)"));
}

}  // namespace
}  // namespace trainer
