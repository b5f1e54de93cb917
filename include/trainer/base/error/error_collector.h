#pragma once
// Collects the errors of several steps, so that a run reports everything that is wrong with a file.

#include <utility>
#include <vector>

#include "trainer/base/error/error.h"

namespace trainer {

using ErrorList = std::vector<Error>;

// Several errors thrown as one. The first error determines what() and code().
class ErrorGroup final : public Error {
 public:
  // `all` must not be empty.
  explicit ErrorGroup(ErrorList all) : Error(all.at(0)), all_(std::move(all)) {}

  const ErrorList& all() const { return all_; }

 private:
  ErrorList all_;
};

// Runs steps and keeps the errors that they throw, so that later steps still run.
class ErrorCollector {
 public:
  ErrorCollector() = default;
  explicit ErrorCollector(ErrorList errors) : errors_(std::move(errors)) {}

  // Runs `step` and returns whether it threw no Error. Keeps the error; the errors of a group are
  // kept one by one.
  template <class Step>
  bool Try(Step&& step) {
    try {
      std::forward<Step>(step)();
      return true;
    } catch (const ErrorGroup& group) {
      Add(group.all());
    } catch (const Error& error) {
      errors_.push_back(error);
    }
    return false;
  }

  // Tries `step` with `collector`. Without one (null), runs `step`, and its error reaches the
  // caller.
  template <class Step>
  static bool Try(ErrorCollector* collector, Step&& step) {
    if (collector != nullptr) return collector->Try(std::forward<Step>(step));
    std::forward<Step>(step)();
    return true;
  }

  void Add(const ErrorList& errors) { errors_.insert(errors_.end(), errors.begin(), errors.end()); }

  bool empty() const { return errors_.empty(); }
  const ErrorList& errors() const { return errors_; }

  // Throws the only error as it is, several as a group. Does nothing if there are none.
  void Throw() const {
    if (errors_.empty()) return;
    if (errors_.size() == 1) throw Error(errors_[0]);
    throw ErrorGroup(errors_);
  }

 private:
  ErrorList errors_;
};

}  // namespace trainer
