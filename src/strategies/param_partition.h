#pragma once
// Decides which parameters each rank updates.

#include <cstdint>
#include <vector>

#include "trainer/base/ranks/rank.h"
#include "trainer/net/param_store.h"

namespace trainer {

// Cuts the array of all weights into share.size equal ranges. The rank owns the parameters whose
// middle is in its range, so each parameter has exactly one owner.
inline std::vector<bool> OwnedParams(const std::vector<Param*>& params, const Rank& share) {
  int64_t all = 0, before = 0;
  for (const Param* param : params) all += param->count();
  std::vector<bool> own;
  for (const Param* param : params) {
    const int64_t middle = before + param->count() / 2;
    own.push_back(middle * share.size / all == share.rank);
    before += param->count();
  }
  return own;
}

}  // namespace trainer
