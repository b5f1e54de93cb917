#include <iostream>

#include "flag_groups.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/temp_remover.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/run/new_project/new_project.h"

namespace trainer {
namespace {

// Writes a net and a solver that suit a data set into a new folder.
class New final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&folders_, 1);
    flags
        .Bind(&options_.data, "data", "PATH",
              "a training set, a folder with both sets, or a folder of images")
        .Required();
    flags.Bind(&options_.test_data, "test_data", "SET",
               "the test set; default: the one next to the training set");
    flags
        .Bind(&options_.net_template, "template", "NAME",
              "which net to write; default: chosen for the images")
        .Choices(templates_);
    flags
        .Bind(&options_.size, "size", "PIXELS",
              "for a FOLDER: scale its images to this height and width")
        .Range(8, 1024);
    flags.Bind(&options_.epochs, "epochs", "N",
               "how many passes over the training set; 0: 40 for a small set, 20 for a larger one");
    DeclareForce(flags, &options_.replace);
  }

  int Run() override {
    if (folders_.empty() || folders_[0].empty()) {
      throw Error(ErrorCode::kUsage, "'trainer new' needs DIR, the folder for the new net");
    }
    options_.folder = folders_[0];
    const TempRemover remover({options_.folder});
    std::cout << ToText(CreateProject(options_));
    return 0;
  }

 private:
  const std::string templates_ = JoinList(NetTemplates(), "|");
  std::vector<std::string> folders_;
  NewProjectOptions options_;
};

const RegisterVerb<New> kNew("new");

}  // namespace
}  // namespace trainer
