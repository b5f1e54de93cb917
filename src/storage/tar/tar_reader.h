#pragma once
// The entries of a tar file, one after the other: POSIX ustar and pax, GNU's long names.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/file/random_access_file.h"

namespace trainer {

constexpr size_t kTarBlock = 512;  // headers have this size, and contents are padded to it

// Reads parts of one file, or of its copy on this machine. Errors of the system throw kIo.
class TarShard {
 public:
  // Throws as OpenForReading does.
  explicit TarShard(const std::string& path, FileOps& ops = FileOps::Posix());

  const std::string& path() const { return file_.path(); }
  uint64_t bytes() const { return file_.bytes(); }
  // `count` bytes from `at`. Throws kData if the file became shorter meanwhile.
  void Read(uint64_t at, size_t count, char* to) const;

 private:
  RandomAccessFile file_;
};

struct TarEntry {
  std::string name;
  uint64_t at = 0, bytes = 0;  // of its content in the file
  bool is_file = false;        // an ordinary one: no folder, link, device
};

// Goes through the headers of a file; of contents it reads no more than comes with them.
class TarReader {
 public:
  explicit TarReader(const TarShard& file) : file_(file) {}

  // False at the end of the archive. Throws kData, naming the file and the place: no tar archive, a
  // compressed one, a header with a wrong checksum, an entry that reaches beyond the end of the
  // file, an archive without an end, names and extended headers that are too long, sparse files.
  bool Next(TarEntry* entry);

  // The content of an entry, for small ones.
  std::string Content(const TarEntry& entry);

 private:
  struct Extended {
    std::string name;
    uint64_t bytes = 0;
    bool has_bytes = false;
  };
  struct Header;

  const char* Look(uint64_t at, size_t count);
  bool ReadHeader(Header* header);
  std::string ReadExtension(const Header& header);
  void TakePax(const std::string& records, Extended* extended) const;
  [[noreturn]] void Fail(const std::string& what) const;

  const TarShard& file_;
  uint64_t at_ = 0;         // of the next header
  uint64_t buffer_at_ = 0;  // in the file, of buffer_
  std::vector<char> buffer_;
};

}  // namespace trainer
