#pragma once
// Data sets copied to a disk of the machine that trains, once for all processes there.

#include <memory>
#include <string>
#include <vector>

namespace trainer {

struct StagingOptions {
  std::string folder;  // "auto": the first of StagingFolders that has room
  bool keep = false;   // leave the copy for later runs
};

// $SLURM_TMPDIR, $LSCRATCH, $RAMDISK, $TMPDIR as far as they are set, /tmp.
std::vector<std::string> StagingFolders();

// A copy that stays as long as some process holds one of these.
class StagedCopy {
 public:
  // Takes over the lock.
  StagedCopy(std::string path, std::string lock_path, int lock, bool keep);
  ~StagedCopy();  // the last one removes the copy, unless it is to be kept
  StagedCopy(const StagedCopy&) = delete;
  StagedCopy& operator=(const StagedCopy&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_, lock_path_;
  int lock_;
  bool keep_;
};

// Copies the database in folder `source` in large reads, or finds the copy that another process
// made of the same state of it, or waits for the one that makes it. A copy is read back and
// compared by checksum before it is used. It lies in <folder>/trainer-stage-<uid>, which nobody
// else may enter.
//
// Null where the database is to be read where it lies: a line of the log says why. It is a warning
// where there is no room, no folder or reading failed; with "auto" a database that lies on a disk
// of this machine is not copied. Throws kNoPermission where the folder that was named has such a
// folder of somebody else.
std::unique_ptr<StagedCopy> StageDatabase(const std::string& source, const StagingOptions& options);

// The same of the tar files that a source names, of which those that gzip has compressed are
// unpacked. From then on they are read from the copies.
std::unique_ptr<StagedCopy> StageTarFiles(const std::string& source, const StagingOptions& options);

// The same of the files that a list of HDF5 files names, and of those that an image list names,
// which are packed into one, in the list's order. From then on they are read out of the copy.
std::unique_ptr<StagedCopy> StageHdf5List(const std::string& list, const StagingOptions& options);
std::unique_ptr<StagedCopy> StageImageList(const std::string& list, const std::string& root,
                                           const StagingOptions& options);

}  // namespace trainer
