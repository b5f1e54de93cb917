#pragma once
// Tar files in the form of POSIX.1-1988 (ustar); names that do not fit there get a header of
// POSIX.1-2001 (pax) before them. Checked with GNU tar and Python's tarfile in tests.

#include <string>
#include <string_view>

#include "trainer/base/file/atomic_file.h"

namespace trainer {

// Writes a tar file of regular files, which gets its name only when it is complete. Equal members
// give equal bytes: times and owners are not stored. Used by one thread. Errors: as AtomicFile
// throws; kData for a member of 8 GiB or more, and for an empty name or one with a zero byte.
class TarWriter {
 public:
  explicit TarWriter(const std::string& path) : file_(path) {}

  void Add(std::string_view name, std::string_view content);
  // Writes the end of the archive. The file does not have its name yet.
  void Finish();
  // Call after Finish: renames the file. The caller syncs the folder.
  void Place() { file_.Place(); }

  const std::string& path() const { return file_.path(); }
  uint64_t size() const { return file_.size(); }
  // Returns the checksum of all bytes so far.
  uint32_t crc32c() const { return file_.crc32c(); }

 private:
  void AddMember(char type, std::string_view name, std::string_view content);

  AtomicFile file_;
};

}  // namespace trainer
