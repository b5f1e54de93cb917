#include "tar/tar_reader.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/path_redirects.h"

namespace trainer {
namespace {

constexpr size_t kAhead = 4096;                              // bytes that come with a header
constexpr uint64_t kMostExtension = 1 << 20;                 // bytes of a long name or a pax header
constexpr uint64_t kTarHeaderMostBytes = uint64_t{1} << 62;  // that an entry may claim

uint64_t ToBlocks(uint64_t bytes) { return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock; }

std::string_view Field(const char* block, size_t at, size_t size) {
  const std::string_view field(block + at, size);
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

// Octal digits among blanks, or, if the first bit is set, a number of base 256.
bool ReadNumber(const char* block, size_t at, size_t size, uint64_t* number) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(block + at);
  *number = 0;
  if ((bytes[0] & 0x80) != 0) {
    for (size_t i = 0; i < size; ++i) {
      if (*number >= kTarHeaderMostBytes >> 8) return false;
      *number = *number << 8 | (i == 0 ? bytes[0] & 0x7f : bytes[i]);
    }
    return true;
  }
  std::string_view digits = Field(block, at, size);
  while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
  while (!digits.empty() && digits.back() == ' ') digits.remove_suffix(1);
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), *number, 8);
  return digits.empty() || (error == std::errc() && stop == digits.data() + digits.size());
}

// The sum of all bytes, with blanks in place of the checksum.
bool HasGoodChecksum(const char* block) {
  constexpr size_t kAt = 148, kSize = 8;
  uint64_t want = 0;
  if (!ReadNumber(block, kAt, kSize, &want)) return false;
  const auto sum_of = [block](size_t from, size_t end) {
    uint32_t sum = 0;
    for (size_t i = from; i < end; ++i) sum += static_cast<unsigned char>(block[i]);
    return sum;
  };
  return sum_of(0, kAt) + kSize * ' ' + sum_of(kAt + kSize, kTarBlock) == want;
}

bool IsZero(const char* block) {
  return std::all_of(block, block + kTarBlock, [](char c) { return c == 0; });
}

const char* CompressionOf(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) return "gzip";
  if (head.starts_with("BZh")) return "bzip2";
  if (head.starts_with("\xfd"
                       "7zXZ"))
    return "xz";
  if (head.starts_with("\x28\xb5\x2f\xfd")) return "zstd";
  return nullptr;
}

}  // namespace

struct TarReader::Header {
  std::string name;
  uint64_t bytes = 0;
  char type = '0';
};

TarShard::TarShard(const std::string& path, FileOps& ops) : file_(ResolvedPath(path), ops) {
  posix_fadvise(file_.fd(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

void TarShard::Read(uint64_t at, size_t count, char* to) const {
  if (file_.Read(at, count, to) == count) return;
  throw Error(ErrorCode::kData, {path()}, "the file became shorter while it was read");
}

void TarReader::Fail(const std::string& what) const {
  throw Error(ErrorCode::kData, {file_.path()}, Join(what, " (at byte ", at_, ")"));
}

// A view of some bytes, valid until the next call.
const char* TarReader::Look(uint64_t at, size_t count) {
  if (at >= buffer_at_ && at + count <= buffer_at_ + buffer_.size()) {
    return buffer_.data() + (at - buffer_at_);
  }
  const uint64_t wanted = std::max<uint64_t>(count, kAhead);
  buffer_.resize(static_cast<size_t>(std::min(wanted, file_.bytes() - at)));
  buffer_at_ = at;
  file_.Read(at, buffer_.size(), buffer_.data());
  return buffer_.data();
}

// False at the archive's end.
bool TarReader::ReadHeader(Header* header) {
  if (at_ + kTarBlock > file_.bytes()) {
    Fail(at_ == 0 ? "the file is too short for a tar archive"
                  : "the archive is truncated: its end is missing; copy it again");
  }
  const char* const block = Look(at_, kTarBlock);
  if (IsZero(block)) return false;
  if (!HasGoodChecksum(block)) {
    const char* const packed = CompressionOf({block, kTarBlock});
    if (at_ == 0 && packed != nullptr) {
      const bool gzip = std::string_view(packed) == "gzip";
      Fail(Join("the archive is compressed with ", packed, ", so its records cannot be found; ",
                gzip ? "unpack it, or let the run unpack a copy: trainer train --local_copy=DIR"
                     : "unpack it"));
    }
    Fail(at_ == 0 ? "the file is not a tar archive"
                  : "the archive is damaged: the header of an entry is missing");
  }
  header->type = block[156];
  const bool posix = std::memcmp(block + 257, "ustar\0", 6) == 0;
  const std::string_view prefix = posix ? Field(block, 345, 155) : std::string_view();
  header->name =
      prefix.empty() ? std::string(Field(block, 0, 100)) : Join(prefix, "/", Field(block, 0, 100));
  if (!ReadNumber(block, 124, 12, &header->bytes))
    Fail("the archive is damaged: the size of an entry is missing");
  return true;
}

std::string TarReader::ReadExtension(const Header& header) {
  if (header.bytes > kMostExtension) Fail("a name or an extended header is too long");
  if (at_ + header.bytes > file_.bytes()) Fail("the archive is truncated; copy it again");
  const auto bytes = static_cast<size_t>(header.bytes);
  std::string text(Look(at_, bytes), bytes);
  at_ += ToBlocks(header.bytes);
  return text;
}

// Records "<length> <key>=<value>\n"; the length counts the whole record.
void TarReader::TakePax(const std::string& records, Extended* extended) const {
  for (std::string_view rest = records; !rest.empty();) {
    size_t length = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = static_cast<size_t>(stop - rest.data());
    if (error != std::errc() || length < digits + 3 || length > rest.size() ||
        rest[digits] != ' ' || rest[length - 1] != '\n') {
      Fail("the archive is damaged: an extended header cannot be parsed");
    }
    const std::string_view record = rest.substr(digits + 1, length - digits - 2);
    const size_t equals = std::min(record.find('='), record.size());
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(std::min(equals + 1, record.size()));
    if (key == "path") extended->name = value;
    if (key == "size") {
      const char* const end = value.data() + value.size();
      const auto parsed = std::from_chars(value.data(), end, extended->bytes);
      extended->has_bytes = parsed.ec == std::errc() && parsed.ptr == end;
      if (!extended->has_bytes) Fail("the archive is damaged: an extended header has no size");
    }
    if (key.starts_with("GNU.sparse."))
      Fail("the archive has a sparse file, which is not supported; store it as a normal file");
    rest.remove_prefix(length);
  }
}

bool TarReader::Next(TarEntry* entry) {
  Extended extended;
  for (Header header;;) {
    if (!ReadHeader(&header)) return false;
    at_ += kTarBlock;
    switch (header.type) {
      case 'L':
        extended.name = ReadExtension(header);
        extended.name.resize(std::min(extended.name.find('\0'), extended.name.size()));
        continue;
      case 'x':
        TakePax(ReadExtension(header), &extended);
        continue;
      case 'K':
      case 'g':
        ReadExtension(header);
        continue;
      case 'S':
        Fail("the archive has a sparse file, which is not supported; store it as a normal file");
      default:
        break;
    }
    entry->name = extended.name.empty() ? header.name : extended.name;
    entry->bytes = extended.has_bytes ? extended.bytes : header.bytes;
    entry->at = at_;
    entry->is_file = header.type == '0' || header.type == '\0' || header.type == '7';
    if (!entry->is_file && header.type >= '1' && header.type <= '6') entry->bytes = 0;
    if (entry->bytes > kTarHeaderMostBytes || at_ + entry->bytes > file_.bytes()) {
      Fail(Join("the archive is truncated: entry ", EscapeControl(entry->name), " has ",
                entry->bytes, " bytes, more than the rest of the archive; copy it again"));
    }
    at_ += ToBlocks(entry->bytes);
    return true;
  }
}

std::string TarReader::Content(const TarEntry& entry) {
  const auto bytes = static_cast<size_t>(entry.bytes);
  return {Look(entry.at, bytes), bytes};
}

}  // namespace trainer
