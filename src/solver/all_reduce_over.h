#pragma once

#include <functional>
#include <span>

#include "trainer/base/ranks/communicator.h"

namespace trainer {

// A function that reduces over the ranks of `group`; empty if that is null.
inline std::function<void(std::span<float>)> ReduceOver(Communicator* group) {
  if (group == nullptr) return {};
  return [group](std::span<float> values) { group->AllReduce(values); };
}

}  // namespace trainer
