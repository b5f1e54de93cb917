#pragma once
// The part of the zip format that NumPy's .npz files use (PKWARE's APPNOTE.TXT, section 4).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/random_access_file.h"

namespace trainer {

// A zip file that is read. Throws kData for a file that is damaged, encrypted or packed by another
// method than deflate, and as RandomAccessFile does.
class ZipReader {
 public:
  explicit ZipReader(const std::string& path);

  // The names of the files in the archive.
  const std::vector<std::string>& names() const { return names_; }
  // Returns the content of the file with that index, unpacked and compared with its checksum.
  std::string Read(size_t index) const;

 private:
  struct Member {
    uint64_t header, packed, bytes;  // where its header begins; sizes in the file and unpacked
    uint32_t crc;
    uint16_t method;
  };

  void FindDirectory(uint64_t* offset, uint64_t* bytes) const;
  // Adds the member at `entry` of the directory, and removes it from `entry`.
  void AddMember(std::string_view* entry);
  [[noreturn]] void FailZip(const std::string& why) const;

  RandomAccessFile file_;
  std::vector<std::string> names_;
  std::vector<Member> members_;
};

// Writes a zip file whose files are not compressed, with 64-bit sizes, as numpy.savez does.
class ZipWriter {
 public:
  explicit ZipWriter(AtomicFile* file) : file_(file) {}

  // Adds a file, whose size and checksum (CRC-32) are known. Its bytes must follow.
  void Begin(const std::string& name, uint64_t bytes, uint32_t crc);
  // Writes the directory.
  void Finish();

 private:
  AtomicFile* file_;
  std::string directory_;
  uint64_t members_ = 0;
};

}  // namespace trainer
