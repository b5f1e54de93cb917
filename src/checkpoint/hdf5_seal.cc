#include "hdf5_seal.h"

#include <algorithm>
#include <bit>

#include "sealed_file.h"
#include "trainer/base/crc32c.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr std::string_view kMark = "trainer, sealed HDF5 that begins at byte 512\r\n\x1a\n";
constexpr size_t kSizeAt = kMark.size(), kCrcAt = kSizeAt + 8;
constexpr int kMaxFlips = 8;  // of 384: no other file is that near

int BitsOff(const std::string& head) {
  int bits = 0;
  for (size_t i = 0; i < std::min(head.size(), kMark.size()); ++i) {
    bits += std::popcount(static_cast<unsigned char>(head[i] ^ kMark[i]));
  }
  return bits;
}

}  // namespace

Seal WriteSealedHdf5(Hdf5Sketch& sketch, AtomicFile* file) {
  Seal seal;
  seal.file_bytes = sketch.Finish();
  std::string head = std::string(kMark) + LittleEndian(seal.file_bytes, 8);
  head.resize(kHdf5SealBytes, '\0');
  // The checksum stands before what it is of: a pass over the memory only, then the writing.
  seal.crc32c = Crc32c(head.data(), head.size());
  sketch.Emit(kHdf5SealBytes, [&](const void* data, size_t bytes) {
    seal.crc32c = Crc32c(data, bytes, seal.crc32c);
  });
  head.replace(kCrcAt, 4, LittleEndian(seal.crc32c, 4));
  file->Append(head.data(), head.size());
  sketch.Emit(kHdf5SealBytes, [&](const void* data, size_t bytes) { file->Append(data, bytes); });
  return seal;
}

bool HasHdf5Seal(const std::string& head) {
  return BitsOff(head) <= (head.size() < kMark.size() ? 0 : kMaxFlips);
}

Seal CheckHdf5Seal(const std::string& path, uint64_t size) {
  const FileHandle file = OpenForReading(path);
  std::string head = ReadPiece(file, path, 0, kHdf5SealBytes);
  if (head.size() < kHdf5SealBytes) {
    ThrowDamaged(path, Join("the file is cut short: only ", size, " bytes are there"));
  }
  const uint64_t stated = FromLittleEndian(std::string_view(head).substr(kSizeAt, 8));
  const Seal seal{static_cast<uint32_t>(FromLittleEndian(std::string_view(head).substr(kCrcAt, 4))),
                  size};
  head.replace(kCrcAt, 4, 4, '\0');
  const uint32_t crc = ChecksumOf(file, path, kHdf5SealBytes, size - kHdf5SealBytes,
                                  Crc32c(head.data(), head.size()));
  if (BitsOff(head) == 0 && stated > size) {
    ThrowDamaged(path, Join("the file is cut short: ", size, " of ", stated, " bytes are there"));
  }
  if (BitsOff(head) != 0 || stated != size || crc != seal.crc32c) {
    ThrowDamaged(path, "the file was changed after it was written: its checksum does not match");
  }
  return seal;
}

}  // namespace trainer
