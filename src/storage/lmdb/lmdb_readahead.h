#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/file/random_access_file.h"

namespace trainer {

// Reads the file of an LMDB that is read in order into the page cache in large reads, before LMDB
// touches its pages. On a network file system a page fault reads some pages and waits for each; a
// large read uses many servers at once. Used by one thread.
class LmdbReadahead {
 public:
  static constexpr uint64_t kBytes = uint64_t{8} << 20;  // of an extent

  // For a database. On a local file system OnRecord does nothing: the system reads ahead well.
  explicit LmdbReadahead(const std::string& path);
  // For a file, treated as if it were on a network file system.
  LmdbReadahead(const std::string& file, uint64_t file_bytes)
      : file_(file), is_behind_network_(true), file_bytes_(file_bytes) {}

  // A record begins at `offset`. Reads the next extent if records have continued into it; after a
  // jump nothing, as random reads would cost an extent each. Returns the number of bytes read.
  uint64_t OnRecord(uint64_t offset);

  // The bytes from `offset` on will be read. On a network file system they are read here. After the
  // first call OnRecord does nothing: the caller announces what is read in order.
  void WillNeed(uint64_t offset, uint64_t bytes);

 private:
  uint64_t Read(uint64_t begin, uint64_t end);

  RandomAccessFile file_;
  bool is_behind_network_ = false, is_told_ = false;
  uint64_t file_bytes_ = 0;
  uint64_t begin_ = 0, end_ = 0;  // the last range read; after a jump, the place after it
  std::vector<char> part_;
};

}  // namespace trainer
