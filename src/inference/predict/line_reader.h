#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "trainer/base/file/file.h"

namespace trainer {

// Reads a text line by line, in memory that does not grow with the number of lines.
class LineReader {
 public:
  // `path` names the text in messages.
  LineReader(FileHandle file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  // Reads the next line, without its newline. Returns false at the end. Throws kIo, and kData for a
  // line of more than 1 MiB.
  bool Next(std::string* line);
  // Returns whether the last line had a newline.
  bool is_complete() const { return is_complete_; }
  // Returns the number of bytes up to the end of the last line.
  uint64_t end() const { return end_; }

 private:
  FileHandle file_;
  std::string path_, buffer_;
  size_t at_ = 0;  // of the next line in buffer_
  bool is_complete_ = true;
  uint64_t end_ = 0;
};

}  // namespace trainer
