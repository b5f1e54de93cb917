#include <iostream>
#include <string>
#include <vector>

#include "flag_groups.h"
#include "trainer/analysis/summary/solver_reference.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

// Prints the fields of a solver, or the reference of one of them.
class SolverFields final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    DeclareJson(flags, &json_);
    flags.BindWords(&names_, 1);
  }

  int Run() override {
    if (json_) {
      std::cout << SolverJson().ToString();
    } else {
      std::cout << (names_.empty() ? SolverFieldsText() : SolverReference(names_[0]));
    }
    return 0;
  }

 private:
  bool json_ = false;
  std::vector<std::string> names_;
};

const RegisterVerb<SolverFields> kSolver("solver");

}  // namespace
}  // namespace trainer
