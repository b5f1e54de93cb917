#pragma once
// Copies of databases that are read in their place. Nets, snapshots and messages of ranks go on
// naming the database, so that a run does not depend on where its copies lay.

#include <string>

namespace trainer {

// From here on OpenCursor opens `copy` where the database `source` is meant, under whatever path.
// Before threads that read.
void ReadInstead(const std::string& source, const std::string& copy);

// The copy of the database at `path`, or `path`.
std::string ReadPathOf(const std::string& path);

}  // namespace trainer
