#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/file/random_access_file.h"

namespace trainer {

// Brings the file of an LMDB that is read in order into the system's memory in large reads, before
// LMDB touches its pages. Behind a network a fault brings in some pages and waits for each; a large
// read keeps many servers busy. For one thread.
class LmdbExtents {
 public:
  static constexpr uint64_t kBytes = uint64_t{8} << 20;  // of an extent

  // Of a database. Where it is not on a network file system, Passed does nothing, as the system
  // reads ahead well there.
  explicit LmdbExtents(const std::string& path);
  // Of a file, as if it were behind a network.
  LmdbExtents(const std::string& file, uint64_t file_bytes)
      : file_(file), is_behind_network_(true), file_bytes_(file_bytes) {}

  // A record begins at `offset`. Reads the next extent where records have gone on into it, and
  // nothing after a jump, as random reads would cost an extent each. Returns how many bytes it
  // read. Throws as RandomAccessFile::Read does.
  uint64_t Passed(uint64_t offset);

  // The bytes from there on are going to be read. Behind a network they are read here; a disk of
  // this machine begins to. From the first call on Passed does nothing: what is read in order is
  // known.
  void WillRead(uint64_t offset, uint64_t bytes);

 private:
  uint64_t Read(uint64_t begin, uint64_t end);

  RandomAccessFile file_;
  bool is_behind_network_ = false, is_told_ = false;
  uint64_t file_bytes_ = 0;
  uint64_t begin_ = 0, end_ = 0;  // of what was read last; after a jump, where it led
  std::vector<char> part_;
};

}  // namespace trainer
