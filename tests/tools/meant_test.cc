// Command lines with an obvious intention: names of other programs, files in the wrong place,
// inputs that are not filled. The answer names the intended command, or says what the numbers are
// worth.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class MeantTest : public testing::Test {
 protected:
  MeantTest() { job_.Write(); }
  Outcome Run(const std::vector<std::string>& command) const {
    return RunHere(command, job_.options());
  }
  void ExpectAnswer(const std::vector<std::string>& command, const std::string& start,
                    const std::string& part) const {
    ExpectRefused(job_, Run(command), 64, start, part);
  }

  Job job_;
};

TEST_F(MeantTest, NamesOfOtherProgramsAnswerWithTheVerb) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"convert_imageset", "trainer dataset images ROOT LIST DB"},
      {"convert_imageset.bin", "trainer dataset images ROOT LIST DB"},
      {"compute_image_mean", "trainer dataset mean DB FILE"},
      {"extract_features", "trainer features --model=NET"},
      {"draw_net", "trainer draw --model=NET --out=FILE.svg"},
      {"python/draw_net.py", "trainer draw --model=NET --out=FILE.svg"},
      {"parse_log", "trainer log FILE --out=DIR"},
      {"tensorboard", "trainer train --solver=FILE --run=DIR"},
      {"upgrade-net-proto-text", "trainer upgrade OLD NEW"},
      {"upgrade_solver_proto_text", "trainer upgrade OLD NEW"},
      {"convert_mnist_data", "trainer dataset idx IMAGES LABELS DB"},
      {"fit", "trainer train --solver=FILE"},
      {"infer", "trainer predict --model=DEPLOY"},
      {"evaluate", "trainer test --model=NET"},
      {"summary", "trainer show --model=NET"},
      {"resume", "--resume=auto"},
      {"caffe", "trainer VERB"}};
  for (const auto& [name, command] : names) {
    ExpectAnswer({name, "x"}, Join("trainer has no verb '", name, "'; the command for it"),
                 command);
  }
}

TEST_F(MeantTest, AFileInThePlaceOfTheVerbIsToldWhatTakesIt) {
  ExpectAnswer({"solver.prototxt"}, "'solver.prototxt' is a path, but a verb is expected",
               "'trainer train --solver=solver.prototxt' for a solver, 'trainer show "
               "--model=solver.prototxt' for a net");
  ExpectAnswer({"x.caffemodel"}, "'x.caffemodel' is a path",
               "trainer test --model=NET --weights=x");
  ExpectAnswer({"x.solverstate"}, "'x.solverstate' is a path", "--snapshot=x.solverstate");
  ExpectAnswer({"data"}, "'data' is a path", "trainer dataset check data");
}

TEST_F(MeantTest, ABareFileIsToldItsFlag) {
  ExpectAnswer({"train", "solver.prototxt"}, "'trainer train': unexpected argument",
               "Did you mean --solver=solver.prototxt?");
  ExpectAnswer({"test", "net.prototxt", "x.caffemodel"}, "'trainer test': unexpected argument",
               "Did you mean --model=net.prototxt?");
  ExpectAnswer({"test", "--model=net.prototxt", "x.caffemodel"}, "'trainer test': unexpected",
               "Did you mean --weights=x.caffemodel?");
  ExpectAnswer({"time", "solver.prototxt"}, "'trainer time'", "--solver=solver.prototxt?");
  ExpectAnswer({"train", "--solver=solver.prototxt", "x.solverstate"}, "'trainer train'",
               "Did you mean --snapshot=x.solverstate?");
  ExpectAnswer({"predict", "deploy.prototxt", "a.png"}, "'trainer predict'",
               "Did you mean --model=deploy.prototxt?");
}

TEST_F(MeantTest, ResumeTakesAFileOrAuto) {
  ExpectAnswer({"train", "--solver=solver.prototxt", "--resume=atuo"}, "--resume=atuo: give auto",
               "or a .solverstate file");
  ExpectRefused(job_, Run({"train", "--solver=solver.prototxt", "--resume=x.solverstate"}), 66,
                job_.folder() / "x.solverstate");
  ExpectAnswer({"train", "--solver=solver.prototxt", "--resume=x.solverstate", "--weights=w"},
               "--resume with a file and --weights cannot both be given", "leave one of them out");
}

TEST_F(MeantTest, ANetGivenAsASolverIsOneSentence) {
  ExpectRefused(job_, Run({"train", "--solver=net.prototxt"}), 78, "net.prototxt: this is a net",
                "but a solver is expected");
  const Outcome check = Run({"check", "--solver=net.prototxt"});
  EXPECT_EQ(check.exit_code, 78);
  EXPECT_THAT(check.out, AllOf(HasSubstr("net.prototxt: this is a net"), HasSubstr("1 error")));
}

TEST_F(MeantTest, ASolverGivenAsANetIsOneSentence) {
  ExpectRefused(job_, Run({"show", "--model=solver.prototxt"}), 78,
                "solver.prototxt: this is a solver, but a net is expected",
                "its net is 'net.prototxt'");
}

TEST_F(MeantTest, MissingWeightsAreNoticedBeforeNetsAreBuilt) {
  const std::vector<std::vector<std::string>> commands = {
      {"train", "--solver=solver.prototxt", "--weights=none.caffemodel"},
      {"test", "--model=net.prototxt", "--weights=none.caffemodel"},
      {"time", "--model=net.prototxt", "--weights=none.caffemodel"},
      {"features", "--model=net.prototxt", "--weights=none.caffemodel", "--blobs=ip",
       "--out=f.h5"}};
  for (const std::vector<std::string>& command : commands) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.exit_code, 66) << outcome.err;
    ASSERT_EQ(outcome.Errors().size(), 1u) << outcome.err;
    EXPECT_THAT(outcome.Errors()[0], HasSubstr("none.caffemodel: cannot open"));
    EXPECT_THAT(outcome.err, Not(HasSubstr("Creating Layer"))) << command[0];
  }
}

TEST_F(MeantTest, TestsAreTurnedOffFromTheCommandLine) {
  const Outcome outcome = job_.Train({"--set=max_iter=12", "--set=test_interval=0"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Optimization Done."));
  EXPECT_THAT(outcome.err, Not(HasSubstr("Testing net")));
  const Outcome both =
      job_.Train({"--set=max_iter=12", "--set=test_iter=", "--set=test_interval=0"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
}

TEST_F(MeantTest, SetTakesListsNegativeNumbersAndOnePhase) {
  const Outcome steps =
      job_.Train({"--set=max_iter=3", "--set=lr_policy=multistep", "--set=gamma=0.1",
                  "--set=stepvalue=[1,2]", "--set=random_seed=-1", "--set", "clip_gradients=-1",
                  "--set=layer[digits,TEST].data_param.batch_size=8"});
  ASSERT_EQ(steps.exit_code, 0) << steps.err;
  const std::string resolved = ReadText(job_.folder() / job_.Files("snap_resolved").at(0));
  EXPECT_THAT(resolved, AllOf(HasSubstr("stepvalue: 1\n"), HasSubstr("stepvalue: 2\n"),
                              HasSubstr("random_seed: -1\n"), HasSubstr("batch_size: 8\n"),
                              HasSubstr("batch_size: 16\n")));
  ExpectAnswer({"train", "--solver=solver.prototxt", "--set=test_iter[7]=2"},
               "--set test_iter[7]=2: there is no element '7' in test_iter", "");
}

TEST_F(MeantTest, TestSaysThatNothingFillsTheInputs) {
  ASSERT_EQ(job_.Train({"--set=max_iter=1"}).exit_code, 0);
  ASSERT_EQ(Run({"deploy", "--model=net.prototxt", "--out=deploy.prototxt"}).exit_code, 0);
  const std::string weights = "--weights=snap_iter_1.caffemodel";
  const Outcome empty = Run({"test", "--model=deploy.prototxt", weights, "--iterations=1"});
  EXPECT_EQ(empty.exit_code, 0) << empty.err;
  EXPECT_TRUE(Finds(empty.err, R"(\nW.*\] no data fills data: the input is all zeros)"))
      << empty.err;
  const Outcome filled = Run({"test", "--model=net.prototxt", weights, "--iterations=1"});
  EXPECT_THAT(filled.err, Not(HasSubstr("no data fills")));
}

TEST_F(MeantTest, DrawReplacesNoFileUnasked) {
  WriteText(job_.folder() / "old.svg", "mine");
  const std::vector<std::string> draw = {"draw", "--model=net.prototxt", "--out=old.svg"};
  ExpectRefused(job_, Run(draw), 73, "old.svg: the file already exists", "--force");
  EXPECT_EQ(ReadText(job_.folder() / "old.svg"), "mine");
  std::vector<std::string> forced = draw;
  forced.push_back("--force");
  EXPECT_EQ(Run(forced).exit_code, 0);
  EXPECT_THAT(ReadText(job_.folder() / "old.svg"), StartsWith("<svg"));
  ExpectAnswer({"draw", "--model=net.prototxt", "--out=net.bmp"}, "--out=net.bmp must end in",
               "Graphviz");
}

TEST_F(MeantTest, DeploySaysHowImagesWerePrepared) {
  const std::string plain = Run({"deploy", "--model=net.prototxt"}).out;
  EXPECT_THAT(plain, StartsWith("# To prepare images as its training did: "
                                "trainer predict --scale=0.00390625\n"));
  job_.net = Edited(job_.net, "phase: TEST }\n  transform_param { scale: 0.00390625 }",
                    "phase: TEST }\n  transform_param { crop_size: 24 mean_value: 30 }");
  job_.Write();
  const Outcome cropped = Run({"deploy", "--model=net.prototxt", "--out=cropped.prototxt"});
  const std::string how = "trainer predict --resize=28,28 --mean_value=30\n";
  EXPECT_THAT(ReadText(job_.folder() / "cropped.prototxt"), HasSubstr(how));
  EXPECT_THAT(cropped.err, HasSubstr(how));
  std::filesystem::remove_all(job_.folder() / "data");
  const Outcome unknown = Run({"deploy", "--model=net.prototxt", "--shape=1,24,24"});
  EXPECT_THAT(unknown.out, HasSubstr("--resize=H,W --mean_value=30 (H,W: the size of the data"));
}

TEST_F(MeantTest, NothingIsSaidOfNetsWithoutImages) {
  job_.net =
      R"(layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 dim: 3 } } }
                layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
                        inner_product_param { num_output: 2 } })";
  job_.Write();
  const Outcome outcome = Run({"deploy", "--model=net.prototxt", "--output=ip"});
  EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("mages")));
}

}  // namespace
}  // namespace trainer
