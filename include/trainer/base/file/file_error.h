#pragma once

#include <string>

#include "trainer/base/error/error.h"

namespace trainer {

// An error that the system reported, with its number. ThrowFileError throws one.
class FileError final : public Error {
 public:
  FileError(ErrorCode code, const SourceRef& place, const std::string& message, int errno_value)
      : Error(code, place, message), errno_value_(errno_value) {}

  int errno_value() const { return errno_value_; }

 private:
  int errno_value_;
};

// Calls `open`, which opens a file that this run has read before. If the file is missing now, its
// disk, server or mount is unavailable, so OpenAgain throws kIo instead of kNoInput.
template <class Open>
auto OpenAgain(const Open& open) {
  try {
    return open();
  } catch (const FileError& error) {
    if (error.code() != ErrorCode::kNoInput) throw;
    throw Error(ErrorCode::kIo, error.what());
  }
}

}  // namespace trainer
