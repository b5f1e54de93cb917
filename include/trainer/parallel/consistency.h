#pragma once
// The consistency check: all ranks of a run must train the same thing.

#include <string>
#include <vector>

#include "trainer/base/ranks/communicator.h"

namespace trainer {

struct ConsistencyItem {
  std::string name;   // "the solver and its nets"
  std::string value;  // of any length; an error shows the first line that differs
};

// Compares the items of all ranks, which give them in the same order. Collective. On rank 0 throws
// kProtocol for the first item that differs, with the names of two ranks (`names` is by rank) and
// both values. The other ranks then fail with PeerFailed in a call of the communicator.
void RequireConsistent(Communicator& group, const std::vector<std::string>& names,
                       const std::vector<ConsistencyItem>& items);

}  // namespace trainer
