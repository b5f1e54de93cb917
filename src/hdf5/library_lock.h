#pragma once
// One caller of the HDF5 library at a time, nothing printed, no plugins loaded.

#include <hdf5.h>

#include <mutex>
#include <string>

#include "trainer/base/error/error.h"
#include "trainer/hdf5/handle.h"

namespace trainer {

// Held during every call of the library; recursive. Turns off its messages for this thread, and for
// good its loading of filters from shared objects: a data file must never run code.
class Hdf5Lock {
 public:
  Hdf5Lock();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// Text of the library's last error in this thread: its innermost message.
std::string Hdf5Reason();

// Throws `code`: "path: what: reason; advice".
[[noreturn]] void ThrowHdf5(ErrorCode code, const std::string& path, const std::string& what,
                            const std::string& advice);

}  // namespace trainer
