#pragma once

#include <string>
#include <utility>

#include "trainer/base/error/error.h"

namespace trainer {

// Returns the code and the message of the Error that f() throws.
template <class F>
std::pair<ErrorCode, std::string> ErrorOf(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  return {ErrorCode::kInternal, "nothing was thrown"};
}

}  // namespace trainer
