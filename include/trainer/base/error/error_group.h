#pragma once
// Several errors thrown as one, so that a run tells all that is wrong with a file.

#include <utility>

#include "trainer/base/error/attempt.h"

namespace trainer {

// what() and code() are those of the first error.
class ErrorGroup final : public Error {
 public:
  // `all` must not be empty.
  explicit ErrorGroup(ErrorList all) : Error(all.at(0)), all_(std::move(all)) {}

  const ErrorList& all() const { return all_; }

 private:
  ErrorList all_;
};

// Throws the only error as it is, several as a group. `all` must not be empty.
[[noreturn]] inline void ThrowAll(ErrorList all) {
  if (all.size() == 1) throw Error(all[0]);
  throw ErrorGroup(std::move(all));
}

// As Attempt; the errors of a group go into `errors` one by one.
template <class Step>
bool AttemptAll(ErrorList* errors, Step&& step) {
  return Attempt(errors, [&] {
    try {
      std::forward<Step>(step)();
    } catch (const ErrorGroup& group) {
      if (errors == nullptr) throw;
      errors->insert(errors->end(), group.all().begin(), group.all().end() - 1);
      throw Error(group.all().back());
    }
  });
}

}  // namespace trainer
