#pragma once
// Copies of data sets that are read in their place. Nets, snapshots and messages of ranks go on
// naming the database, so that a run does not depend on where its copies lay.

#include <string>

#include "trainer/data/file_pack.h"

namespace trainer {

// From here on OpenCursor opens `copy` where the database `source` is meant, under whatever path,
// and so do readers of HDF5 files. Before threads that read.
void ReadInstead(const std::string& source, const std::string& copy);

// The copy of the database or file at `path`, or `path`.
std::string ReadPathOf(const std::string& path);

// From here on the files that an image list names below `root` are read out of the pack in
// `folder`. Before threads that read. Throws as FilePack does.
void ReadPackInstead(const std::string& list, const std::string& root, const std::string& folder);

// That pack, which stays until the program ends, or null.
const FilePack* PackOf(const std::string& list, const std::string& root);

}  // namespace trainer
