#pragma once
// What may be copied to this machine: databases, and the files that a list names.

#include <functional>
#include <string>
#include <vector>

#include "trainer/data/image_list.h"

namespace trainer {

// The state of a data set, and how its copy, a folder, is made.
struct StagingSource {
  std::string path;  // canonical, for messages
  std::string name;  // of the copy: no other state of the data set has it
  // How large the copy gets.
  std::function<uint64_t()> bytes;
  // Copies into a folder that is there; `done` hears of bytes. All is read back and compared.
  std::function<void(const std::string& folder, const std::function<void(uint64_t)>& done)> copy;
  // Whether a copy that was complete still is.
  std::function<bool(const std::string& folder)> is_whole;
};

// All throw the errors of the files that they look at.
StagingSource DatabaseToStage(const std::string& path);
// Copies the files of a list of HDF5 files as "0-<name>", "1-<name>", ...
StagingSource Hdf5ListToStage(const std::string& list);
std::string NameInCopy(size_t file, const std::string& path);
// Copies the tar files that a source names; those that gzip has compressed are unpacked.
StagingSource TarFilesToStage(const std::string& source);
// Packs the files of an image list. Its state is the list's: files that are changed under their
// names are not noticed, as looking at each takes as long as copying it where that is worth while.
StagingSource ImageListToStage(const std::string& list, const std::string& root);

}  // namespace trainer
