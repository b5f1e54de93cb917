#include <iostream>
#include <limits>

#include "flag_groups.h"
#include "trainer/base/error/error.h"
#include "trainer/cli/verb.h"
#include "trainer/monitor/run_status.h"

namespace trainer {
namespace {

// Prints the progress of the runs that the given folders are or contain.
class Status final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&folders_, std::numeric_limits<int>::max());
    DeclareJson(flags, &json_);
  }

  int Run() override {
    if (folders_.empty()) {
      throw Error(ErrorCode::kUsage,
                  "'trainer status' needs a DIR: the folder of 'trainer train --run=DIR'");
    }
    std::vector<RunStatus> runs;
    for (const std::string& folder : folders_) {
      for (const std::string& run : FindRuns(folder)) runs.push_back(StatusOfRun(run));
    }
    if (json_) {
      Json list = Json::Array();
      for (const RunStatus& status : runs) list.Push(ToJson(status));
      std::cout << list.ToString();
    } else {
      std::cout << ToText(runs);
    }
    return 0;
  }

 private:
  std::vector<std::string> folders_;
  bool json_ = false;
};

const RegisterVerb<Status> kStatus("status");

}  // namespace
}  // namespace trainer
