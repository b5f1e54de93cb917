#pragma once
// Which parameters each of several ranks updates.

#include <cstdint>
#include <vector>

#include "trainer/base/ranks/rank.h"
#include "trainer/net/param_store.h"

namespace trainer {

// About one of `share.count` parts of all numbers: a parameter is of the part in which its middle
// lies. All parts together have each once.
inline std::vector<bool> OwnParams(const std::vector<Param*>& params, const Rank& share) {
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
