#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace trainer {

class FolderWalk;
class LineReader;

// The paths of images, one by one, in memory that does not grow with their number: first files and
// the images of folders, then the lines of a list. Not thread-safe.
class ImagePaths {
 public:
  // `words` are files and folders, in which FolderWalk finds the images. `list` is "", a file with
  // a path per line, or "-" for the standard input. A number at the end of a line is dropped if no
  // such file exists, because the lists of ImageData have labels. Throws as OpenForReading if the
  // list cannot be opened.
  ImagePaths(std::vector<std::string> words, const std::string& list);
  ImagePaths(ImagePaths&&) noexcept;
  ~ImagePaths();

  // Gets the next path. Returns false at the end. Throws kIo, and kData if there are no images at
  // all.
  bool Next(std::string* path);

 private:
  bool NextOfWords(std::string* path);
  bool NextOfList(std::string* path);

  std::vector<std::string> words_;
  size_t next_word_ = 0;
  std::unique_ptr<FolderWalk> walk_;  // of the last word, if that is a folder
  std::string list_name_;             // for messages
  std::unique_ptr<LineReader> list_;
  bool is_first_line_ = true;
  int64_t count_ = 0;  // paths returned so far
};

}  // namespace trainer
