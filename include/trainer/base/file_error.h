#pragma once

#include <string>

#include "trainer/base/error.h"

namespace trainer {

// An error that the system reported, with its number: what may be tried again is told by it (see
// io_wait.h). ThrowFileError throws one.
class FileError final : public Error {
 public:
  FileError(ErrorCode code, const SourceRef& place, const std::string& message, int errno_value)
      : Error(code, place, message), errno_value_(errno_value) {}

  int errno_value() const { return errno_value_; }

 private:
  int errno_value_;
};

}  // namespace trainer
