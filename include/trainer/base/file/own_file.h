#pragma once
// Files that must not outlive the process, even if a signal ends it: a file which says that this
// process is running, and files that it has not finished writing. They are kept in a table of fixed
// size, which a signal handler may read. A file that does not fit (16 files, paths and marks below
// 4 KiB) is not remembered, and stays until another process finds that its owner has ended. Any
// thread may call these functions.

#include <string>

namespace trainer {

// Remembers the file `path` for RemoveOwnFiles. With a `mark`, the file is removed only if `mark`
// is its whole content; otherwise it belongs to another process.
void RememberOwnFile(const std::string& path, const std::string& mark = "");
// Removes `path` from the table if it is there.
void ForgetOwnFile(const std::string& path);

// Exists during the call that creates the file `path`: it remembers the file, and a RemoveOwnFiles
// of another thread waits until the call is over, at most 1 s.
class OwnFileCreation {
 public:
  explicit OwnFileCreation(const std::string& path);
  ~OwnFileCreation();
  OwnFileCreation(const OwnFileCreation&) = delete;
  OwnFileCreation& operator=(const OwnFileCreation&) = delete;
};

// Removes the remembered files. Async-signal-safe; meant for handlers that end the process. From
// now on a thread that would create another such file blocks until the process ends.
void RemoveOwnFiles();

}  // namespace trainer
