#include "file_identity.h"

#include <cerrno>

#include "trainer/base/file/file_error.h"
#include "trainer/base/file/file_ops.h"
#include "trainer/base/text/text.h"

namespace trainer {

FileIdentity::FileIdentity(const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    File file{path, {}};
    if (stat(path.c_str(), &file.facts) == 0) files_.push_back(file);
  }
}

void FileIdentity::Check(const std::string& set) const {
  for (const File& file : files_) {
    const struct stat now = OpenAgain([&] {
      struct stat facts {};
      if (stat(file.path.c_str(), &facts) != 0) {
        ThrowFileError(FileUse::kInput, "look at", file.path, errno);
      }
      return facts;
    });
    const struct stat& then = file.facts;
    if (now.st_ino == then.st_ino && now.st_size == then.st_size &&
        now.st_mtim.tv_sec == then.st_mtim.tv_sec && now.st_mtim.tv_nsec == then.st_mtim.tv_nsec) {
      continue;
    }
    throw Error(
        ErrorCode::kData, {set},
        Join("'", EscapeControl(file.path),
             "' was changed during the run, so the next epoch would read different data; resume "
             "from the last snapshot with a copy of the data that no program changes"));
  }
}

}  // namespace trainer
