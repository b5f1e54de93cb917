#include "trainer/storage/sealed_tar.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "tar/tar_reader.h"
#include "tar/tar_writer.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kSealName[] = "checksum";
constexpr uint64_t kTarRecord = 10240;  // TarWriter fills files up to a multiple of this
constexpr size_t kMostMembers = 1000;

// Returns the content of the last member.
std::string SealText(uint32_t crc, uint64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "crc32c %08x of the first %llu bytes\n", crc,
                static_cast<unsigned long long>(bytes));
  return text;
}

[[noreturn]] void FailSeal(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kData, {path}, Join(why, "; copy the file again"));
}

std::string ReadTarBytes(const TarShard& file, uint64_t at, uint64_t bytes) {
  std::string content(bytes, '\0');
  file.Read(at, bytes, content.data());
  return content;
}

// Returns the checksum of the first `bytes` bytes.
uint32_t ChecksumOfHead(const TarShard& file, uint64_t bytes) {
  uint32_t crc = 0;
  for (uint64_t at = 0; at < bytes;) {
    const std::string piece = ReadTarBytes(file, at, std::min<uint64_t>(bytes - at, 1 << 20));
    crc = Crc32c(piece.data(), piece.size(), crc);
    at += piece.size();
  }
  return crc;
}

// Throws kData unless `seal` is the right checksum and the file ends after it, with zeros.
void CheckSeal(const TarShard& file, const TarEntry& seal) {
  const uint64_t header = seal.at - kTarBlock, end = seal.at + seal.bytes;
  const uint64_t used = seal.at + (seal.bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
  const uint64_t whole = (used + 2 * kTarBlock + kTarRecord - 1) / kTarRecord * kTarRecord;
  if (file.bytes() != whole) {
    FailSeal(file.path(), Join("the file has ", file.bytes(), " bytes instead of ", whole));
  }
  const std::string rest = ReadTarBytes(file, end, whole - end);
  const bool has_zeros = rest.find_first_not_of('\0') == std::string::npos;
  const std::string expected = SealText(ChecksumOfHead(file, header), header);
  if (has_zeros && ReadTarBytes(file, seal.at, seal.bytes) == expected) return;
  FailSeal(file.path(), "its checksum does not match: the file was changed or damaged");
}

}  // namespace

bool IsTarThatBeginsWith(const std::string& path, const std::string& member) {
  constexpr size_t kNameBytes = 100, kMagicAt = 257;
  const RandomAccessFile file(path);
  std::string head(kTarBlock, '\0');
  head.resize(file.Read(0, head.size(), head.data()));
  return head.size() == kTarBlock && head.compare(kMagicAt, 5, "ustar") == 0 &&
         head.substr(0, std::min(head.find('\0'), kNameBytes)) == member;
}

void WriteSealedTar(const std::string& path, std::span<const TarMember> members) {
  TarWriter tar(path);
  for (const TarMember& member : members) tar.Add(member.name, member.content);
  tar.Add(kSealName, SealText(tar.crc32c(), tar.size()));
  tar.Finish();
  tar.Place();
  SyncFolder(FolderOf(path));
}

std::vector<TarMember> ReadSealedTar(const std::string& path) {
  const TarShard file(path);
  TarReader reader(file);
  std::vector<TarEntry> entries;
  for (TarEntry entry; reader.Next(&entry);) {
    const bool again = std::ranges::any_of(
        entries, [&](const TarEntry& other) { return other.name == entry.name; });
    if (!entry.is_file || again || entries.size() == kMostMembers) {
      FailSeal(path, Join("it has a member '", EscapeControl(entry.name),
                          "' that this program does not write"));
    }
    entries.push_back(entry);
  }
  if (entries.empty() || entries.back().name != kSealName) {
    FailSeal(path, Join("its last member is not '", kSealName, "'"));
  }
  CheckSeal(file, entries.back());
  entries.pop_back();
  std::vector<TarMember> members;
  for (const TarEntry& entry : entries) {
    members.push_back({entry.name, ReadTarBytes(file, entry.at, entry.bytes)});
  }
  return members;
}

}  // namespace trainer
