#pragma once
// A file that says "this process is at work" and must not outlive it, even when a signal ends it.

#include <string>

namespace trainer {

// Remembers the file `path`, whose whole content is `mark`, for RemoveOwnFile; one at a time.
// What is longer than 4 KiB is not remembered and stays until somebody finds that its owner is
// gone.
void RememberOwnFile(const std::string& path, const std::string& mark);
// If it is the one that is remembered.
void ForgetOwnFile(const std::string& path);

// Removes the file that is remembered, unless its content is not `mark` any more: then it is
// another process's. Async-signal-safe; for handlers that end the process.
void RemoveOwnFile();

}  // namespace trainer
