#pragma once

#include <cstddef>

namespace trainer {

// A CopyQueue of a device on which batches are made in part: it also copies within the device's
// memory, in order with its other copies. `from` holds still until WaitForCopies returned.
class CopiesWithin {
 public:
  virtual ~CopiesWithin() = default;
  virtual void CopyWithin(void* to, const void* from, size_t bytes) = 0;
};

}  // namespace trainer
