// The command `trainer inspect`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "datum.pb.h"
#include "in_process.h"
#include "job.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

// A job with trained weights in a run's folder, and a digit as image.
struct InspectJob : Job {
  InspectJob() {
    EXPECT_EQ(Train({"--run=run"}).exit_code, 0);
    const auto cursor = OpenCursor("LMDB", folder() / "data/test_lmdb");
    caffe::Datum datum;
    EXPECT_TRUE(datum.ParseFromString(std::string(cursor->Value())));
    WriteText(folder() / "0.pgm", "P5 28 28 255\n" + datum.data());
  }
  Outcome Inspect(std::vector<std::string> words) const {
    words.insert(words.begin(), "inspect");
    return RunHere(words, options());
  }
};

TEST(InspectTest, WritesAPageAboutARun) {
  const InspectJob job;
  WriteText(job.folder() / "names.txt", "nil\nunit\npair\n3\n4\n5\n6\n7\n8\nnine lives\n");
  const std::vector<std::string> command = {"--run=run", "--labels=names.txt", "--out=page.html",
                                            "0.pgm"};
  const Outcome outcome = job.Inspect(command);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, MatchesRegex("page\\.html: 2 blobs, best answer [a-z0-9 ]+ "
                                        "\\([01]\\.[0-9]{4}\\)\n"));
  const std::string page = ReadText(job.folder() / "page.html");
  EXPECT_THAT(page, AllOf(HasSubstr("small: 0.pgm</h1>"), HasSubstr("saliency of "),
                          HasSubstr("ip (InnerProduct)")));
  ExpectRefused(job, job.Inspect(command), 73, "", "page.html");
  std::vector<std::string> again = command;
  again.push_back("--force");
  EXPECT_EQ(job.Inspect(again).exit_code, 0);
  EXPECT_EQ(ReadText(job.folder() / "page.html"), page) << "the same again";
}

TEST(InspectTest, RefusesWhatItCannotShow) {
  const InspectJob job;
  const auto refuse = [&](std::vector<std::string> words, int code, const std::string& part) {
    words.push_back("--out=page.html");
    ExpectRefused(job, job.Inspect(words), code, "", part);
    EXPECT_THAT(job.Files("page"), IsEmpty());
  };
  refuse({"--run=run"}, 64, "'trainer inspect' needs an image");
  refuse({"0.pgm"}, 64, "'trainer inspect' needs --model=FILE, or --run=DIR");
  refuse({"--run=run", "--oversample", "0.pgm"}, 64, "--oversample");
  refuse({"--run=run", "--output=ip", "0.pgm"}, 64, "--output: the net has no output 'ip'");
  refuse({"--run=run", "--layers=conv", "0.pgm"}, 64,
         "--layers=conv: there is no layer 'conv'. The layers are: ");
  refuse({"--run=run", "data"}, 64, "data is a folder; 'trainer inspect' shows one image");
  refuse({"--run=run", "none.pgm"}, 66, "none.pgm");
  WriteText(job.folder() / "bad.png", "no image");
  refuse({"--run=run", "bad.png"}, 65, "bad.png: the file is not an image");
  ExpectRefused(job, job.Inspect({"--run=run", "--out=page.png", "0.pgm"}), 64,
                "--out=page.png must end in .html");
}

}  // namespace
}  // namespace trainer
