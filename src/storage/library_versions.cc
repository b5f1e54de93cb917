#include "trainer/storage/library_versions.h"

#include <leveldb/db.h>
#include <lmdb.h>

#include "trainer/base/text/text.h"
#include "trainer/hdf5/library_version.h"

namespace trainer {

std::vector<std::pair<std::string, std::string>> StorageLibraryVersions() {
  int major = 0, minor = 0, patch = 0;
  mdb_version(&major, &minor, &patch);
  return {{"LMDB", Join(major, ".", minor, ".", patch)},
          {"LevelDB", Join(leveldb::kMajorVersion, ".", leveldb::kMinorVersion)},
          {"HDF5", Hdf5LibraryVersion()}};
}

}  // namespace trainer
