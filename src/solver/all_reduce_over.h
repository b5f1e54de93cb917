#pragma once

#include <functional>
#include <span>

#include "trainer/base/ranks/communicator.h"

namespace trainer {

// Returns a function that all-reduces over the ranks of `group`, or an empty one if `group` is
// null.
inline std::function<void(std::span<float>)> ReduceOver(Communicator* group) {
  if (group == nullptr) return {};
  return [group](std::span<float> values) { group->AllReduce(values); };
}

}  // namespace trainer
