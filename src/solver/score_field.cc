#include "score_field.h"

#include <algorithm>

#include "trainer/base/text/text.h"

namespace trainer {

TestScore ScoreFor(const char* field, const SolverSpec& spec,
                   const std::vector<std::string>& outputs) {
  if (spec.tests.empty()) {
    spec.Fail(field, Join(field,
                          " compares tests, but the solver has no test net; give test_iter and "
                          "test_interval, or remove the line"));
  }
  const std::string& wanted = spec.proto.best_output();
  if (!wanted.empty() && std::ranges::count(outputs, wanted) == 0) {
    spec.Fail("best_output",
              Join("the first test net has no output '", EscapeControl(wanted), "'.",
                   DidYouMean(wanted, outputs), " Its outputs are ", JoinList(outputs)));
  }
  return ScoreOf(ScoredOutput(spec.proto), outputs);
}

}  // namespace trainer
