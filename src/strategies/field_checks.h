#pragma once
// Checks of StrategyParameter, for the constructors of strategies.

#include <string>

#include "trainer/base/text/text.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Throws kConfig unless `good`: "strategy_param.period is 0; it must be ...".
template <class T>
void RequireField(const SolverSpec& spec, bool good, const std::string& name, T value,
                  const std::string& must) {
  if (good) return;
  spec.Fail("strategy_param", Join("strategy_param.", name, " is ", value, "; it must be ", must));
}

// Throws kConfig if `value` of strategy_param.`name` is below `least`.
inline void RequireAtLeast(const SolverSpec& spec, const std::string& name, int value, int least) {
  RequireField(spec, value >= least, name, value, Join("at least ", least));
}

}  // namespace trainer
