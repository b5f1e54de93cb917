#pragma once
// Going on after an error, to find the next one too.

#include <utility>
#include <vector>

#include "trainer/base/error/error.h"

namespace trainer {

using ErrorList = std::vector<Error>;

// Runs `step` and returns true. An Error that it throws goes into `errors` and gives false; without
// a list (null) it goes on to the caller.
template <class Step>
bool Attempt(ErrorList* errors, Step&& step) {
  if (errors == nullptr) {
    std::forward<Step>(step)();
    return true;
  }
  try {
    std::forward<Step>(step)();
    return true;
  } catch (const Error& error) {
    errors->push_back(error);
    return false;
  }
}

}  // namespace trainer
