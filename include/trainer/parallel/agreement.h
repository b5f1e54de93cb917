#pragma once
// Ranks of one run must agree on what they train before they begin.

#include <string>
#include <vector>

#include "trainer/base/ranks/communicator.h"

namespace trainer {

struct Fact {
  std::string name;   // "the solver and its nets"
  std::string value;  // as long as it may be; of several lines the first that differs is shown
};

// Compares the facts of all ranks, which give them in one order. Throws kProtocol, on rank 0, for
// the first that differs: with the two ranks, named as in `names`, and what each has. The others
// then find out in their next call of the group.
void RequireAgreement(Communicator& group, const std::vector<std::string>& names,
                      const std::vector<Fact>& facts);

// The text of rank 0.
std::string TextOfRank0(Communicator& group, const std::string& own);

}  // namespace trainer
