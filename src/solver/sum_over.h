#pragma once

#include <functional>
#include <span>

#include "trainer/base/ranks/communicator.h"

namespace trainer {

// Sums over the replicas of a group; empty where there is none.
inline std::function<void(std::span<float>)> SumOver(Communicator* group) {
  if (group == nullptr) return {};
  return [group](std::span<float> values) { group->Sum(values); };
}

}  // namespace trainer
