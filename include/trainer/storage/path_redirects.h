#pragma once
// Data sets read from a copy. All else uses the original name: no run depends on where copies are.

#include <string>

#include "trainer/storage/file_pack.h"

namespace trainer {

// From here on OpenCursor and readers of HDF5 files open `copy` instead of the database `source`,
// whichever path names it. Call it before threads read.
void RedirectPath(const std::string& source, const std::string& copy);

// Returns the copy of the database or file at `path`, or `path` if it has none.
std::string ResolvedPath(const std::string& path);

// From here on the files that an image list names below `root` are read from the pack in `folder`.
// Call it before threads read. Throws as FilePack does.
void RedirectToPack(const std::string& list, const std::string& root, const std::string& folder);

// Returns the pack of that list and root, which is valid until the program ends, or null.
const FilePack* FilePackOf(const std::string& list, const std::string& root);

}  // namespace trainer
