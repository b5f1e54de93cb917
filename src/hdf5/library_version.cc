#include "trainer/hdf5/library_version.h"

#include "library_lock.h"
#include "trainer/base/text/text.h"

namespace trainer {

std::string Hdf5LibraryVersion() {
  const Hdf5Lock lock;
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return Join(major, ".", minor, ".", release);
}

}  // namespace trainer
