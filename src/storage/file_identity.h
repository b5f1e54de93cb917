#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

namespace trainer {

// Inode, size and time of the last change of some files, as they were when this was made.
class FileIdentity {
 public:
  // Files that cannot be looked at are left out: who reads them says so.
  explicit FileIdentity(const std::vector<std::string>& files);

  // Throws kData, naming the set and the file, where one was replaced or changed; as ThrowFileError
  // does where one cannot be looked at any more, kIo where it is missing.
  void Check(const std::string& set) const;

 private:
  struct File {
    std::string path;
    struct stat facts;
  };
  std::vector<File> files_;
};

}  // namespace trainer
