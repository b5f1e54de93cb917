#include "trainer/run/new_project/new_project.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"
#include "trainer/config/solver_spec.h"
#include "trainer/datasets/digits.h"

namespace trainer {
namespace {

using testing::HasSubstr;

class NewProjectTest : public testing::Test {
 protected:
  NewProjectTest() {
    WriteDigits({.folder = folder_ / "digits", .train = 120, .test = 40});
    options_.data = folder_ / "digits";
  }
  NewProject Create(const std::string& name, const std::string& net_template = "") {
    options_.folder = folder_ / name;
    options_.net_template = net_template;
    return CreateProject(options_);
  }
  void ExpectRefused(const std::string& name, ErrorCode code, const std::string& part) {
    const auto [thrown, message] = ErrorOf([&] { Create(name); });
    EXPECT_EQ(thrown, code) << message;
    EXPECT_THAT(message, HasSubstr(part));
  }

  TempFolder folder_;
  NewProjectOptions options_;
};

TEST_F(NewProjectTest, EveryTemplateGivesASolverThatLoads) {
  for (const std::string& name : NetTemplates()) {
    const NewProject project = Create(name, name);
    const SolverSpec solver = LoadSolver(project.solver(), {});
    EXPECT_EQ(solver.tests.size(), 1u) << name;
    EXPECT_EQ(solver.proto.max_iter(), project.settings.max_iter) << name;
    EXPECT_THAT(ReadText(project.deploy()), HasSubstr("type: \"Input\"")) << name;
  }
}

TEST_F(NewProjectTest, FillsInTheSizesOfTheData) {
  options_.data = folder_ / "digits/train_lmdb";
  options_.epochs = 5;
  const NewProject project = Create("net");
  EXPECT_EQ(project.data.classes, 10);
  EXPECT_EQ(project.data.height, 28);
  const std::string text = ToText(project);
  EXPECT_THAT(text, HasSubstr("digits/train_lmdb: 120 images for training, 40 for tests, 1x28x28, "
                              "10 classes\n"));
  EXPECT_THAT(text, HasSubstr("net/train_test.prototxt: lenet, batches of 12\n"));
  EXPECT_THAT(text, HasSubstr("net/solver.prototxt: 5 epochs, 50 iterations\n"));
  const std::string net = ReadText(project.net());
  EXPECT_THAT(net, HasSubstr("num_output: 10 "));
  EXPECT_THAT(net, HasSubstr(Join("source: \"", folder_ / "digits/test_lmdb",
                                  "\" backend: LMDB batch_size: 40")));
  EXPECT_THAT(ReadText(project.solver()),
              HasSubstr("# iterations between tests, each over all 40 test images\n"));
  EXPECT_THAT(ReadText(project.deploy()), HasSubstr("type: \"Softmax\""));
}

// Two classes of ten gray images of 24x20 pixels.
TEST_F(NewProjectTest, ConvertsAFolderOfImages) {
  for (const std::string name : {"dark", "light"}) {
    const std::string place = folder_ / ("images/" + name);
    std::filesystem::create_directories(place);
    for (int i = 0; i < 10; ++i) {
      const char pixel = static_cast<char>((name == "dark" ? 20 : 100) + i);
      WriteText(Join(place, "/", i, ".pgm"), "P5 24 20 255\n" + std::string(24 * 20, pixel));
    }
  }
  options_.data = folder_ / "images";
  options_.size = 16;
  const NewProject project = Create("net", "mlp");
  const std::string text = ToText(project);
  EXPECT_THAT(text, HasSubstr("net/labels.txt: 2 classes\n"));
  EXPECT_THAT(text, HasSubstr("net/train_lmdb: 16 images for training, 4 for tests, 3x16x16, 2 "
                              "classes\n"));
  EXPECT_THAT(text, HasSubstr(Join("trainer predict --model=", project.deploy(), " --weights=")));
  EXPECT_EQ(ReadText(folder_ / "net/labels.txt"), "dark\nlight\n");
}

TEST_F(NewProjectTest, RefusesWhatIsMissingOrWouldBeReplaced) {
  options_.data = folder_ / "nowhere";
  ExpectRefused("net", ErrorCode::kNoInput, "nowhere");
  std::filesystem::rename(folder_ / "digits/train_lmdb", folder_ / "digits/set");
  options_.data = folder_ / "digits/set";
  ExpectRefused("net", ErrorCode::kUsage, "there is no test set next to ");
  options_.test_data = folder_ / "digits/test_lmdb";
  Create("net");
  ExpectRefused("net", ErrorCode::kCannotCreate, "--force");
  options_.replace = true;
  Create("net", "mlp");
}

}  // namespace
}  // namespace trainer
