#include "trainer/inference/predict/prediction_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/error_of.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::Pair;

class PredictionFileTest : public testing::Test {
 protected:
  PredictionFileOptions Options(const std::string& name, size_t top = 2) const {
    return {folder_ / name, top, names_};
  }
  // Writes the rows of the images from `begin` on.
  void Write(PredictionFile& file, size_t begin = 0) const {
    for (size_t i = begin; i < images_.size(); ++i) file.Add(images_[i]);
    file.Finish();
  }
  // Writes all rows and returns the file's text.
  std::string Whole(const std::string& name) const {
    PredictionFile file(Options(name), 3);
    Write(file);
    return ReadText(folder_ / name);
  }
  std::vector<std::string> Paths() const {
    std::vector<std::string> paths;
    for (const ImageScores& image : images_) paths.push_back(image.path);
    return paths;
  }
  void ExpectRefused(const PredictionFileOptions& options, std::vector<std::string> paths,
                     ErrorCode code, const std::string& part) const {
    ImagePaths source(std::move(paths), "");
    PredictionFile::Written written;
    EXPECT_THAT(ErrorOf([&] { PredictionFile::Resume(options, 3, source, &written); }),
                Pair(code, HasSubstr(part)));
  }

  TempFolder folder_;
  std::vector<std::string> names_;
  std::vector<ImageScores> images_ = {{"a.png", "", 0, {0.25f, 0.5f, 0.1f}},
                                      {"b, \"c\".png", "b: it is no image, \"really\"", 65, {}},
                                      {"d\n.png", "", 0, {0, NAN, 1e-8f}}};
};

TEST_F(PredictionFileTest, ATableHasARowPerImage) {
  EXPECT_EQ(Whole("p.csv"),
            "image,class_1,score_1,class_2,score_2,exit_code,error\n"
            "a.png,1,0.5,0,0.25,0,\n"
            "\"b, \"\"c\"\".png\",,,,,65,\"b: it is no image, \"\"really\"\"\"\n"
            "d\\x0a.png,2,1e-08,0,0,0,\n");
  names_ = {"x", "y, z", "w"};
  EXPECT_THAT(
      Whole("p.csv"),
      testing::StartsWith("image,class_1,name_1,score_1,class_2,name_2,score_2,exit_code,error\n"
                          "a.png,1,\"y, z\",0.5,0,x,0.25,0,\n\"b"));
  const PredictionFileOptions more = Options("more.csv", 9);
  PredictionFile(more, 3).Finish();
  EXPECT_THAT(ReadText(more.path), HasSubstr("score_3,exit_code")) << "no more than classes";
}

TEST_F(PredictionFileTest, LinesOfJsonAreThoseThatThePrintedJsonHas) {
  EXPECT_EQ(Whole("p.jsonl"), ToJson(images_[0], 2, {}).ToLine() +
                                  ToJson(images_[1], 2, {}).ToLine() +
                                  ToJson(images_[2], 2, {}).ToLine());
}

// The file may end at any byte, as an interrupted write leaves it.
TEST_F(PredictionFileTest, AFileThatEndsAnywhereBecomesTheWholeFile) {
  for (const std::string name : {"p.csv", "p.jsonl"}) {
    const std::string whole = Whole(name);
    for (size_t length = 0; length <= whole.size(); ++length) {
      folder_.Write(name, whole.substr(0, length));
      ImagePaths paths(Paths(), "");
      PredictionFile::Written written;
      const auto file = PredictionFile::Resume(Options(name), 3, paths, &written);
      ASSERT_LE(written.rows, 3);
      EXPECT_EQ(written.bad, written.rows > 1 ? 1 : 0);
      EXPECT_EQ(written.exit_code, written.rows > 1 ? 65 : 0);
      std::string path;
      EXPECT_EQ(paths.Next(&path), written.rows < 3);
      if (written.rows < 3) {
        EXPECT_EQ(path, images_[static_cast<size_t>(written.rows)].path);
      }
      Write(*file, static_cast<size_t>(written.rows));
      ASSERT_EQ(ReadText(folder_ / name), whole) << name << " of " << length << " bytes";
    }
  }
}

TEST_F(PredictionFileTest, AMissingFileIsBegun) {
  ImagePaths paths(Paths(), "");
  PredictionFile::Written written;
  Write(*PredictionFile::Resume(Options("new.csv"), 3, paths, &written));
  EXPECT_EQ(written.rows, 0);
  EXPECT_EQ(ReadText(folder_ / "new.csv"), Whole("p.csv"));
}

// The last image that was read is 'd', whose row has the scores 1e-08 and 0.
TEST_F(PredictionFileTest, RefusesAnotherAnswerForTheLastImage) {
  for (const std::string name : {"p.csv", "p.jsonl"}) {
    Whole(name);
    ImagePaths paths(Paths(), "");
    PredictionFile::Written written;
    const auto file = PredictionFile::Resume(Options(name), 3, paths, &written);
    EXPECT_EQ(written.last_image, images_[2].path);
    const auto require = [&](float first, float second) {
      ImageScores image = images_[2];
      image.scores = {second, NAN, first};
      file->RequireLastAnswer(written, image);
    };
    require(1e-8f, 0);
    require(1.001e-8f, 1e-40f);
    const auto expect_refused = [&](float first, float second) {
      EXPECT_THAT(ErrorOf([&] { require(first, second); }),
                  Pair(ErrorCode::kUsage,
                       HasSubstr(name + ": its answer for 'd\\x0a.png' is not that of this net, so "
                                        "its rows were written with other weights or flags; give "
                                        "those of the first run, or another --out")));
    };
    expect_refused(1.1e-8f, 0);
    expect_refused(1e-8f, 1e-9f);
    expect_refused(0, 1e-8f);  // another class comes first
  }
}

TEST_F(PredictionFileTest, RefusesToContinueAnotherFile) {
  for (const std::string name : {"p.csv", "p.jsonl"}) {
    const std::string whole = Whole(name);
    const std::string first = name == "p.csv" ? ":2: " : ":1: ";
    ExpectRefused(Options(name), {"b.png"}, ErrorCode::kData,
                  name + first + "this row is not of the next image, 'b.png': ");
    ExpectRefused(Options(name), {"a.png"}, ErrorCode::kData,
                  "the file has more rows than there are images now");
    EXPECT_EQ(ReadText(folder_ / name), whole) << "nothing is changed";
  }
  ExpectRefused(Options("p.csv", 1), Paths(), ErrorCode::kUsage,
                "p.csv:1: the file has other columns than this command writes (image,class_1,"
                "score_1,exit_code,error); give the flags of the first run, or another --out");
  ExpectRefused(
      Options("p.txt"), Paths(), ErrorCode::kUsage,
      "p.txt: the name must end in .csv (a table), .jsonl (a line of JSON per image) or .npz "
      "(arrays for NumPy)");
  EXPECT_THAT(ErrorOf([] { RequirePredictionFormat("p.npz"); }),
              Pair(ErrorCode::kUsage, HasSubstr("--out=p.npz: the name must end in .csv")));
}

}  // namespace
}  // namespace trainer
