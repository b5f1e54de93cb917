// Nets and solvers written for a data set, and the demonstration.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"
#include "trainer/datasets/digits.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class NewTest : public testing::Test {
 protected:
  Outcome Run(const std::vector<std::string>& command) const {
    return RunHere(command, {.folder = folder_.path()});
  }
  void ExpectRefused(const std::vector<std::string>& command, int code, const std::string& part) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(part)));
  }
  void WriteSmallDigits() const {
    WriteDigits({.folder = folder_ / "digits", .train = 120, .test = 40});
  }
  // Writes two classes of ten gray images of 24x20 pixels.
  void WriteImageFolder() const {
    for (const std::string name : {"dark", "light"}) {
      const std::string place = folder_ / ("images/" + name);
      std::filesystem::create_directories(place);
      for (int i = 0; i < 10; ++i) {
        const char pixel = static_cast<char>((name == "dark" ? 20 : 100) + i);
        WriteText(place + "/" + std::to_string(i) + ".pgm",
                  "P5 24 20 255\n" + std::string(24 * 20, pixel));
      }
    }
  }
  TempFolder folder_;
};

TEST_F(NewTest, EveryTemplatePassesCheck) {
  WriteSmallDigits();
  for (const std::string name :
       {"mlp", "lenet", "cnn", "resnet18", "mobilenet_v2", "autoencoder"}) {
    const Outcome made = Run({"new", name, "--data=digits", "--template=" + name});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const Outcome check = Run({"check", "--solver=" + name + "/solver.prototxt"});
    EXPECT_EQ(check.exit_code, 0) << name << check.err << check.out;
    EXPECT_THAT(check.out, Not(HasSubstr("warning:"))) << name;
  }
}

TEST_F(NewTest, AFolderOfImagesBecomesANetInTwoCommands) {
  WriteImageFolder();
  const Outcome made = Run({"new", "net", "--data=images", "--template=mlp", "--size=16"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("trainer predict --model=net/deploy.prototxt --weights="
                                  "net/snapshots/net_iter_"));
  EXPECT_THAT(made.out, HasSubstr("net/train_lmdb: 16 images for training, 4 for tests, 3x16x16, "
                                  "2 classes\n"));
  EXPECT_EQ(ReadText(folder_ / "net/labels.txt"), "dark\nlight\n");
  const Outcome trained = Run({"train", "--solver=net/solver.prototxt"});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("accuracy = 1"));
}

TEST_F(NewTest, RefusesAMissingFolderAndAnUnknownTemplate) {
  ExpectRefused({"new", "--data=digits"}, 64, "'trainer new' needs DIR");
  ExpectRefused({"new", "net", "--data=digits", "--template=vgg"}, 64, "mlp");
}

TEST_F(NewTest, TheDemonstrationTrainsTestsAndReports) {
  const Outcome outcome = Run({"demo", "--epochs=1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("\n$ trainer train --solver=trainer-demo/lenet/solver.prototxt"));
  EXPECT_TRUE(Finds(outcome.out, "accuracy 9[0-9.]+%: "));
  EXPECT_THAT(ReadText(folder_ / "trainer-demo/report.html"), HasSubstr("<title>lenet: run"));
  ExpectRefused({"demo"}, 73, "trainer demo DIR");
}

}  // namespace
}  // namespace trainer
