#pragma once

#include <string>
#include <vector>

namespace trainer {

// Finds the images in a folder and the folders below it, in byte order of their paths (the order
// of LC_ALL=C sort). The walk skips hidden files, hidden folders, and files without the extension
// of an image format. It does not enter symbolic links to folders, so it cannot run in a circle.
//
// The memory does not grow with the number of files: of a large folder, only the next names are
// kept, and the folder is read again for the names after them.
class FolderWalk {
 public:
  // How many names of a folder are kept at a time.
  static constexpr size_t kNames = size_t{1} << 17;

  explicit FolderWalk(std::string folder, size_t names = kNames);

  // Gets the next path. Returns false at the end. A folder that cannot be read is itself returned
  // as a path, so that reading it reports the reason.
  bool Next(std::string* path);

 private:
  // A folder whose files are being returned.
  struct Level {
    std::string folder;                   // with '/' at the end, unless it is ""
    std::vector<std::string> names = {};  // the next ones, the last one first; folders end with '/'
    std::string last = "";                // the greatest name that `names` had
    bool is_whole = false;                // no names follow `last`
  };

  // Reads the names after `last`. Returns false if the folder cannot be read.
  bool ReadNames(Level* level) const;

  size_t most_;
  std::vector<Level> levels_;
};

}  // namespace trainer
