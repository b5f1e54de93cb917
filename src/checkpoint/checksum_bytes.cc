#include "checksum_bytes.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "trainer/base/error/error.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"

namespace trainer {

std::string LittleEndian(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

uint64_t FromLittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string ReadPiece(const FileHandle& file, const std::string& path, uint64_t offset,
                      size_t bytes) {
  std::string piece(bytes, '\0');
  size_t used = 0;
  while (used < bytes) {
    const ssize_t got =
        pread(file.get(), piece.data() + used, bytes - used, static_cast<off_t>(offset + used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowFileError(FileUse::kInput, "read", AbsolutePath(path), errno);
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  piece.resize(used);
  return piece;
}

uint32_t ChecksumOf(const FileHandle& file, const std::string& path, uint64_t offset,
                    uint64_t bytes, uint32_t crc) {
  while (bytes > 0) {
    const std::string piece =
        ReadPiece(file, path, offset, std::min<uint64_t>(bytes, size_t{1} << 20));
    if (piece.empty()) break;
    crc = Crc32c(piece.data(), piece.size(), crc);
    offset += piece.size();
    bytes -= piece.size();
  }
  return crc;
}

void ThrowDamaged(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kBadSnapshot, {path},
              Join(why, "; copy the file again, or use another snapshot"));
}

}  // namespace trainer
