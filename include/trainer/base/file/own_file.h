#pragma once
// Files that must not outlive the process, even when a signal ends it: one that says "this process
// is at work", and those that it has not finished writing. A table of fixed size, which a signal
// handler may read; what does not fit (16 files, paths and marks below 4 KiB) is not remembered and
// stays until somebody finds that its owner is gone. Any thread.

#include <string>

namespace trainer {

// Remembers the file `path` for RemoveOwnFiles: with a `mark`, only while that is its whole
// content; else it is another process's.
void RememberOwnFile(const std::string& path, const std::string& mark = "");
// If it is remembered.
void ForgetOwnFile(const std::string& path);

// Around the call that creates the file `path`: remembers it, and no RemoveOwnFiles of another
// thread looks between the two.
class OwnFileCreation {
 public:
  explicit OwnFileCreation(const std::string& path);
  ~OwnFileCreation();
  OwnFileCreation(const OwnFileCreation&) = delete;
  OwnFileCreation& operator=(const OwnFileCreation&) = delete;
};

// Removes the files that are remembered. Async-signal-safe; for handlers that end the process: from
// now on a thread that would create another one waits for that end.
void RemoveOwnFiles();

}  // namespace trainer
