#pragma once
// What a stopped program leaves on the disk.

#include <string>
#include <vector>

namespace trainer {

// From here on SIGINT, SIGTERM and SIGHUP, where they would end the process, first remove the
// temporary files and folders (TempPathFor) that it has in these folders; then they end it as if
// unhandled. To be called before other threads are made.
void RemoveTempsOnSignal(const std::vector<std::string>& folders);

}  // namespace trainer
