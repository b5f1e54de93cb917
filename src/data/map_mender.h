#pragma once
// Brings pages of mapped files back that the system could not read (SIGBUS): their disk or server
// was away, or the file's handle went stale. A thread of its own looks for the file, as
// ReadPatiently does, and maps it again at the same address, so that whoever met the fault repeats
// its instruction and goes on.

#include <pthread.h>

#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "trainer/base/steady_file.h"

namespace trainer {

// A file that is mapped from its beginning, or, with `bytes` 0, a folder whose files are mapped by
// somebody else.
struct MendableMap {
  std::string path;
  const void* start = nullptr;
  size_t bytes = 0;
  std::optional<FileStamp> stamp = {};  // of the file; nothing: any that is long enough will do
  std::string lost = {};                // the error, once it did not come back
};

enum class Mending {
  kDone,   // the page can be read
  kLost,   // the file did not come back; zeros are in its place
  kUnfit,  // it is there, and is another one or too short: damage
};

// While it lives, faults in the map are mended.
class MendingScope {
 public:
  explicit MendingScope(MendableMap map);
  ~MendingScope();
  MendingScope(const MendingScope&) = delete;
  MendingScope& operator=(const MendingScope&) = delete;

  bool IsLost() const;

 private:
  std::list<MendableMap>::iterator map_;
};

// For a signal handler: asks the thread to mend the page of `address` and waits for its answer.
Mending MendPage(uintptr_t address);

// The thread that mends pages, once there is one: who asked waits for it.
std::optional<pthread_t> MendingThread();

}  // namespace trainer
