#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

struct gzFile_s;

namespace trainer {

// Reads a file and unpacks it if gzip has packed it.
class GzipReader {
 public:
  // Throws as OpenForReading does.
  explicit GzipReader(const std::string& path);

  // Reads `bytes` (below 2 GiB), or fewer at the end of the file. Throws kIo; kData for damage.
  size_t Read(void* to, size_t bytes);
  // About how many bytes of the file itself have been read.
  uint64_t packed_bytes() const;

 private:
  struct CloseGzip {
    void operator()(gzFile_s* file) const;
  };

  std::string path_;
  std::unique_ptr<gzFile_s, CloseGzip> file_;
};

// Whether a file begins as gzip files do. Throws as OpenForReading does, and kIo.
bool IsGzip(const std::string& path);

// The unpacked size that the file states, in 32 bits: correct below 4 GiB if it was compressed in
// one piece. 0 for a file that is too short. Throws as IsGzip does.
uint64_t UnpackedBytes(const std::string& path);

// Unpacks `from`, of one or several members, to `to`. `done` gets the bytes written. Throws kData
// for a file that is damaged, or unpacks to far more than images can; as reading and AtomicFile do.
void UnpackGzip(const std::string& from, const std::string& to,
                const std::function<void(uint64_t)>& done);

}  // namespace trainer
