#pragma once
// Opens every file that the program writes in place: logs, metrics, locks, temporary files.

#include <string>

#include "trainer/base/file/file_ops.h"

namespace trainer {

// Throws kCannotCreate if `path` exists and is not a regular file that has one name and belongs to
// this user, i.e. if it is a symbolic link, a hard link, a pipe, a device, a folder or another
// user's file. Writing to it would change a file that the user did not name, or block for ever. A
// missing file passes.
void RequireOwnFile(const std::string& path);

// Opens a file for writing as FileOps::Open does with `flags`, if it passes RequireOwnFile. O_TRUNC
// takes effect after that check. The call never blocks and does not follow a link in the last part
// of the path. Returns a descriptor, or -1 and errno; throws as RequireOwnFile does.
int OpenOwnFile(const std::string& path, int flags, mode_t mode = 0666,
                FileOps& ops = FileOps::Posix());

}  // namespace trainer
