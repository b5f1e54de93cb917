#pragma once
// Plans local copies of databases and of the files that a list names.

#include <functional>
#include <string>

namespace trainer {

// The state of a data set, and how its copy, a folder, is made.
struct LocalCopyPlan {
  std::string path;  // canonical, for messages
  std::string name;  // of the copy: no other state of the data set has it
  // How large the copy gets.
  std::function<uint64_t()> bytes;
  // Copies into an existing folder and compares. `done` is called with the bytes copied.
  std::function<void(const std::string& folder, const std::function<void(uint64_t)>& done)> copy;
  // Whether a copy that was complete still is.
  std::function<bool(const std::string& folder)> is_whole;
};

// All throw the errors of the files that they look at.
LocalCopyPlan PlanDatabaseCopy(const std::string& path);
// Copies the files of a list of HDF5 files as "0-<name>", "1-<name>", ...
LocalCopyPlan PlanHdf5ListCopy(const std::string& list);
std::string NameInCopy(size_t file, const std::string& path);
// Copies the tar files that a source names; those that gzip has compressed are unpacked.
LocalCopyPlan PlanTarShardCopy(const std::string& source);
// Packs the files of an image list. The state is the list's: a file that changed under its name is
// not noticed, because checking each file takes as long as copying it where copying is useful.
LocalCopyPlan PlanImageListCopy(const std::string& list, const std::string& root);

}  // namespace trainer
