#include <iostream>

#include "shared_flags.h"
#include "trainer/analysis/summary/solver_reference.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

class SolverFields final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kSettings,
        .summary = "list the update rules and the fields of a solver",
        .usage = "trainer solver [FIELD|RULE] [--json]",
        .text =
            "With a field: prints its type, its default and what it does. With an update rule: "
            "prints its formula. --json prints all of this, for editors and other programs.",
        .examples =
            "trainer solver\n"
            "trainer solver warmup_iter\n"
            "trainer solver Adam\n"
            "trainer solver --json",
        .flags = {JsonFlag()},
        .max_words = 1,
    };
  }

  int Run(const Flags& flags) override {
    if (flags.Switch("json")) {
      std::cout << SolverJson().ToString();
    } else if (!flags.words().empty()) {
      std::cout << SolverReference(flags.words()[0]);
    } else {
      std::cout << SolverFieldsText();
    }
    return 0;
  }
};

const RegisterVerb<SolverFields> kSolver("solver");

}  // namespace
}  // namespace trainer
