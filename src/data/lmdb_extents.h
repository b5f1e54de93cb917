#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

// Brings the file of an LMDB that is read in order into the system's memory in large reads, before
// LMDB touches its pages. Behind a network a fault brings in some pages and waits for each; a large
// read keeps many servers busy. For one thread.
class LmdbExtents {
 public:
  static constexpr uint64_t kBytes = uint64_t{8} << 20;  // of an extent

  // Of a database on a network file system; elsewhere it does nothing, as the system reads ahead
  // well there.
  explicit LmdbExtents(const std::string& path);
  // Of an open file, wherever it lies.
  LmdbExtents(int fd, uint64_t file_bytes) : fd_(fd), file_bytes_(file_bytes) {}
  ~LmdbExtents();
  LmdbExtents(const LmdbExtents&) = delete;
  LmdbExtents& operator=(const LmdbExtents&) = delete;

  // A record begins at `offset`. Reads the next extent where records have gone on into it, and
  // nothing after a jump, as random reads would cost an extent each. Returns how many bytes it
  // read. A read that fails is left to LMDB's own.
  uint64_t Passed(uint64_t offset);

 private:
  int fd_ = -1;
  bool owns_ = false;
  uint64_t file_bytes_ = 0;
  uint64_t begin_ = 0, end_ = 0;  // of what was read last; after a jump, where it led
  std::vector<char> part_;
};

}  // namespace trainer
