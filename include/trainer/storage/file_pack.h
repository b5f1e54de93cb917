#pragma once
// Packs: many files, concatenated into one.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/base/file/random_access_file.h"

namespace trainer {

// Reads a pack, which is alone in its folder. Members may be called from any thread.
class FilePack {
 public:
  // Throws as ReadFile does; kData for any other content.
  explicit FilePack(const std::string& folder);

  size_t size() const { return ends_.size(); }
  // Reads the i-th file. Throws kIo, and kData if the pack is truncated.
  void Read(size_t i, std::string* bytes) const;

 private:
  RandomAccessFile file_;
  std::vector<uint64_t> ends_;  // end of each file, where the next one begins
};

// Packs these files, in this order, into an existing folder, and compares. `done` gets the bytes
// that were added. Throws the errors of the files and of AtomicFile.
void WriteFilePack(const std::vector<std::string>& files, const std::string& folder,
                   const std::function<void(uint64_t bytes)>& done);

// Whether the folder has a complete pack.
bool IsWholePack(const std::string& folder);

}  // namespace trainer
