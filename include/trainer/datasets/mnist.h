#pragma once
// The files that MNIST comes in: one of images, one of labels, gzipped or not.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace trainer {

// Reads a pair of files image by image. Used by one thread.
//
// Format: big-endian 32-bit numbers: images 0x803, count, rows, columns, then rows * columns bytes
// per image; labels 0x801, count, then one byte per label. Source: yann.lecun.com/exdb/mnist.
// Errors: kNoInput, kNoPermission; kData naming the file and what is wrong: another kind of file,
// a size of 0 or above 16384, different counts, truncated, damaged or longer than its header says.
class IdxReader {
 public:
  IdxReader(const std::string& images, const std::string& labels);
  ~IdxReader();

  uint32_t count() const { return count_; }
  int rows() const { return rows_; }
  int columns() const { return columns_; }

  // The next image, (H, W), and its label. False after the last one, when both files were read to
  // their ends.
  bool Next(std::vector<uint8_t>* pixels, int* label);

 private:
  class File;
  std::unique_ptr<File> images_, labels_;
  uint32_t count_ = 0, done_ = 0;
  int rows_ = 0, columns_ = 0;
};

// Writes the images of a pair of files to a database, in file order, with keys %08d. Returns their
// number. Errors: as IdxReader and DatabaseWriter throw; kUsage for a count that CheckRecordCount
// refuses.
int64_t WriteIdx(const std::string& images, const std::string& labels, const std::string& database,
                 const std::string& backend = "LMDB");

}  // namespace trainer
