#pragma once
// Copies data sets to a disk of this host, once for all its processes.

#include <memory>
#include <string>

namespace trainer {

struct LocalCopyOptions {
  // "auto": the first of $SLURM_TMPDIR, $LSCRATCH, $RAMDISK, $TMPDIR and /tmp with enough room.
  std::string folder;
  bool keep = false;  // leave the copy for later runs
};

// A copy, which exists as long as some process holds one of these.
class LocalCopy {
 public:
  // Takes over the lock.
  LocalCopy(std::string path, std::string lock_path, int lock, bool keep);
  ~LocalCopy();  // the last one removes the copy, unless it is to be kept
  LocalCopy(const LocalCopy&) = delete;
  LocalCopy& operator=(const LocalCopy&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_, lock_path_;
  int lock_;
  bool keep_;
};

// Copies the database in folder `source` in large reads; or finds the copy of the same state that
// another process made, or waits for the process that is making it. A copy is read back and
// compared by checksum before it is used. Its folder, <folder>/trainer-stage-<uid>, is closed to
// other users.
//
// Returns null if the original is to be read; a line of the log says why. That line is a warning if
// no folder or not enough room was found, or reading failed. With "auto", a database on a local
// disk is not copied. Throws kNoPermission if the named folder has such a folder of another user.
std::unique_ptr<LocalCopy> CopyDatabaseLocally(const std::string& source,
                                               const LocalCopyOptions& options);

// Copies the tar files of a source, unpacks gzipped ones, and lets them be read from the copies.
std::unique_ptr<LocalCopy> CopyTarShardsLocally(const std::string& source,
                                                const LocalCopyOptions& options);

// Copies the files that a list of HDF5 files names, or packs the files of an image list into one,
// in the list's order. From then on they are read from the copy.
std::unique_ptr<LocalCopy> CopyHdf5ListLocally(const std::string& list,
                                               const LocalCopyOptions& options);
std::unique_ptr<LocalCopy> CopyImageListLocally(const std::string& list, const std::string& root,
                                                const LocalCopyOptions& options);

}  // namespace trainer
