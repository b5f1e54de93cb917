#include <iostream>

#include "trainer/base/error/error.h"
#include "trainer/checkpoint/upgrade_file.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

// Rewrites a net, a solver or weights in the current format.
class Upgrade final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&files_, 2);
    flags.Bind(&replace_, "force", "", "replace OUT if it exists, even if it is the file IN");
  }

  int Run() override {
    if (files_.size() != 2) {
      throw Error(ErrorCode::kUsage,
                  "'trainer upgrade' needs IN and OUT: the file and its new name");
    }
    std::cout << UpgradeFile(files_[0], files_[1], replace_);
    return 0;
  }

 private:
  std::vector<std::string> files_;
  bool replace_ = false;
};

const RegisterVerb<Upgrade> kUpgrade("upgrade");

}  // namespace
}  // namespace trainer
