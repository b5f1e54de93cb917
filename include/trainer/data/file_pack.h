#pragma once
// The files that a list names, one behind the other in one file.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/base/file/random_access_file.h"

namespace trainer {

// A pack lies in a folder of its own, which holds nothing else. Members may be called from any
// thread.
class FilePack {
 public:
  // Throws as ReadFile does, kData for anything else.
  explicit FilePack(const std::string& folder);

  size_t size() const { return ends_.size(); }
  // The bytes of the i-th file. Throws kIo, and kData where the pack is cut short.
  void Read(size_t i, std::string* bytes) const;

 private:
  RandomAccessFile file_;
  std::vector<uint64_t> ends_;  // of each file; the next one begins there
};

// Packs these files in this order into a folder that is there. `done` hears how many bytes were
// added. All that is written is read back and compared. Throws the errors of the files and of
// AtomicFile.
void WriteFilePack(const std::vector<std::string>& files, const std::string& folder,
                   const std::function<void(uint64_t bytes)>& done);

// Whether a folder holds all of a pack.
bool IsWholePack(const std::string& folder);

}  // namespace trainer
