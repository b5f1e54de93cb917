// Checks of the fields that give times in epochs.

#include "checks/solver_checks.h"
#include "trainer/base/text/text.h"

namespace trainer {

void SolverChecks::CheckEpochs() const {
  struct Pair {
    const char *epochs, *iterations;
  };
  for (const auto& [epochs, iterations] :
       {Pair{"max_epoch", "max_iter"}, Pair{"test_interval_epoch", "test_interval"},
        Pair{"snapshot_epoch", "snapshot"}, Pair{"stepvalue_epoch", "stepvalue"}}) {
    if (!Given(epochs) || !Given(iterations)) continue;
    solver_.Fail(epochs, Join(epochs, " and ", iterations,
                              " are both given: they set the same time, in epochs and in "
                              "iterations; remove one"));
  }
  CheckEpochTime("max_epoch", proto_.has_max_epoch(), proto_.max_epoch());
  CheckEpochTime("test_interval_epoch", proto_.has_test_interval_epoch(),
                 proto_.test_interval_epoch());
  CheckEpochTime("snapshot_epoch", proto_.has_snapshot_epoch(), proto_.snapshot_epoch());
  for (int i = 0; i < proto_.stepvalue_epoch_size(); ++i) {
    const float value = proto_.stepvalue_epoch(i);
    if (i == 0 ? value >= 0 : value > proto_.stepvalue_epoch(i - 1)) continue;
    solver_.Fail("stepvalue_epoch",
                 i == 0 ? Join("stepvalue_epoch is ", value, "; it must be 0 or more")
                        : Join("stepvalue_epoch ", value, " comes after ",
                               proto_.stepvalue_epoch(i - 1), "; the values must increase"),
                 i);
  }
}

void SolverChecks::CheckEpochTime(const char* name, bool given, float value) const {
  if (!given || value > 0) return;
  solver_.Fail(name, Join(name, " is ", value, "; it must be above 0, such as 1 or 0.5"));
}

}  // namespace trainer
