#pragma once
// How every file is opened that the program writes in place: logs, metrics, locks, temporary files.

#include <string>

#include "trainer/base/file/file_ops.h"

namespace trainer {

// Throws kCannotCreate where something is at `path` that is not a regular file with one name which
// belongs to this user: a symbolic link, a hard link, a pipe, a device, a folder, another user's
// file. What is written there would reach a file that nobody named, or wait for ever.
void RequireOwnFile(const std::string& path);

// As FileOps::Open with `flags` for a file that is written, which must be as RequireOwnFile wants
// it; O_TRUNC takes effect after that was looked at. Never waits and follows no link in the last
// part of the path. A descriptor, or -1 and errno; throws as RequireOwnFile does.
int OpenOwnFile(const std::string& path, int flags, mode_t mode = 0666,
                FileOps& ops = FileOps::Posix());

}  // namespace trainer
