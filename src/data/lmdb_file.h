#pragma once
// LMDB's file before LMDB sees it.

#include <string>

namespace trainer {

// Throws what the number `rc`, LMDB's or the system's, means for the database `path`, met while
// `what` was done.
[[noreturn]] void FailLmdb(const std::string& path, const std::string& what, int rc);

// Before anything is mapped: data.mdb is a regular file, not empty, with sound headers.
void CheckLmdbFile(const std::string& path);

}  // namespace trainer
