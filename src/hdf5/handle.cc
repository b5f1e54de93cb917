#include "trainer/hdf5/handle.h"

#include "library_lock.h"

namespace trainer {

bool Hdf5Handle::Close() {
  if (id_ < 0) return true;
  const Hdf5Lock lock;
  return H5Idec_ref(std::exchange(id_, -1)) >= 0;
}

}  // namespace trainer
