#include "numpy/zip_file.h"

#include <zlib.h>

#include <algorithm>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kLocatorBytes = 20,
                 kEnd64Bytes = 56;
constexpr uint64_t kMostDirectoryBytes = uint64_t{64} << 20;
constexpr uint32_t kIn64 = 0xffffffff;  // the value is in the 64-bit extra field
constexpr uint16_t kExtra64 = 1;
constexpr uint16_t kStored = 0, kDeflated = 8;

// Returns the little-endian number of `bytes` bytes at `at`.
uint64_t ZipNumber(std::string_view text, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(text[at + i]);
  return value;
}

void PutZipNumber(uint64_t value, size_t bytes, std::string* to) {
  for (size_t i = 0; i < bytes; ++i) *to += static_cast<char>(value >> (8 * i) & 0xff);
}

// Replaces the values that do not fit 32 bits by those of the 64-bit extra field, which lists them
// in this order.
void ReadZip64(std::string_view extra, const std::vector<uint64_t*>& values) {
  while (extra.size() >= 4) {
    const size_t length = ZipNumber(extra, 2, 2);
    if (extra.size() < 4 + length) return;
    std::string_view field = extra.substr(4, length);
    if (ZipNumber(extra, 0, 2) == kExtra64) {
      for (uint64_t* value : values) {
        if (*value != kIn64 || field.size() < 8) continue;
        *value = ZipNumber(field, 0, 8);
        field.remove_prefix(8);
      }
    }
    extra.remove_prefix(4 + length);
  }
}

// Returns the unpacked bytes; fewer or one more than `bytes` if `packed` is damaged.
std::string Inflated(std::string_view packed, uint64_t bytes) {
  constexpr size_t kStep = size_t{1} << 20;
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return "";
  std::string out;
  int state = Z_OK;
  while (state == Z_OK && out.size() <= bytes) {
    const size_t before = out.size();
    out.resize(std::min<uint64_t>(before + kStep, bytes + 1));
    if (stream.avail_in == 0) {
      const size_t part = std::min<size_t>(packed.size(), size_t{1} << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream.avail_in = static_cast<uInt>(part);
      packed.remove_prefix(part);
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(out.size() - before);
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  return out;
}

uint32_t ZipCrc(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

ZipReader::ZipReader(const std::string& path) : file_(path) {
  uint64_t offset = 0, bytes = 0;
  FindDirectory(&offset, &bytes);
  if (bytes > kMostDirectoryBytes || offset > file_.bytes() || bytes > file_.bytes() - offset) {
    FailZip("its directory is damaged");
  }
  std::string directory(bytes, '\0');
  directory.resize(file_.Read(offset, bytes, directory.data()));
  for (std::string_view rest = directory; !rest.empty();) AddMember(&rest);
}

void ZipReader::FailZip(const std::string& why) const {
  throw Error(ErrorCode::kData, {file_.path()},
              Join("this zip file cannot be read: ", why,
                   "; copy it again, or write it again with numpy.savez or 'trainer export'"));
}

void ZipReader::FindDirectory(uint64_t* offset, uint64_t* bytes) const {
  const uint64_t most = kEndBytes + 0xffff + kLocatorBytes;  // with the longest comment
  const uint64_t begin = file_.bytes() - std::min(file_.bytes(), most);
  std::string tail(file_.bytes() - begin, '\0');
  tail.resize(file_.Read(begin, tail.size(), tail.data()));
  const size_t end = tail.rfind(std::string("PK\x05\x06", 4));
  if (end == std::string::npos || tail.size() - end < kEndBytes) {
    FailZip("it is truncated, or no zip file");
  }
  *bytes = ZipNumber(tail, end + 12, 4);
  *offset = ZipNumber(tail, end + 16, 4);
  if (end < kLocatorBytes || ZipNumber(tail, end - kLocatorBytes, 4) != kEnd64Locator) return;
  const uint64_t record = ZipNumber(tail, end - kLocatorBytes + 8, 8);
  std::string end64(kEnd64Bytes, '\0');
  if (file_.Read(record, kEnd64Bytes, end64.data()) != kEnd64Bytes ||
      ZipNumber(end64, 0, 4) != kEnd64) {
    FailZip("its directory is damaged");
  }
  *bytes = ZipNumber(end64, 40, 8);
  *offset = ZipNumber(end64, 48, 8);
}

void ZipReader::AddMember(std::string_view* entry) {
  if (entry->size() < kEntryBytes || ZipNumber(*entry, 0, 4) != kDirectoryEntry) {
    FailZip("its directory is damaged");
  }
  const size_t name = ZipNumber(*entry, 28, 2), extra = ZipNumber(*entry, 30, 2),
               comment = ZipNumber(*entry, 32, 2);
  if (entry->size() < kEntryBytes + name + extra + comment) FailZip("its directory is damaged");
  Member member{.header = ZipNumber(*entry, 42, 4),
                .packed = ZipNumber(*entry, 20, 4),
                .bytes = ZipNumber(*entry, 24, 4),
                .crc = static_cast<uint32_t>(ZipNumber(*entry, 16, 4)),
                .method = static_cast<uint16_t>(ZipNumber(*entry, 10, 2))};
  ReadZip64(entry->substr(kEntryBytes + name, extra),
            {&member.bytes, &member.packed, &member.header});
  names_.emplace_back(entry->substr(kEntryBytes, name));
  const bool encrypted = (ZipNumber(*entry, 8, 2) & 1) != 0;
  if (encrypted) FailZip(Join("'", EscapeControl(names_.back()), "' is encrypted"));
  members_.push_back(member);
  entry->remove_prefix(kEntryBytes + name + extra + comment);
}

std::string ZipReader::Read(size_t index) const {
  const Member& member = members_[index];
  const std::string name = Join("'", EscapeControl(names_[index]), "' ");
  std::string header(kLocalBytes, '\0');
  if (file_.Read(member.header, kLocalBytes, header.data()) != kLocalBytes ||
      ZipNumber(header, 0, 4) != kLocalHeader) {
    FailZip(name + "is damaged");
  }
  const uint64_t begin =
      member.header + kLocalBytes + ZipNumber(header, 26, 2) + ZipNumber(header, 28, 2);
  if (begin > file_.bytes() || member.packed > file_.bytes() - begin) {
    FailZip(name + "is truncated");
  }
  std::string packed(member.packed, '\0');
  packed.resize(file_.Read(begin, member.packed, packed.data()));
  if (member.method != kStored && member.method != kDeflated) {
    FailZip(Join(name, "is packed by method ", member.method, ", but only deflate is supported"));
  }
  std::string content =
      member.method == kStored ? std::move(packed) : Inflated(packed, member.bytes);
  if (content.size() == member.bytes && ZipCrc(content) == member.crc) return content;
  FailZip(name + "differs from its checksum: the file is damaged");
}

void ZipWriter::Begin(const std::string& name, uint64_t bytes, uint32_t crc) {
  constexpr uint16_t kVersion64 = 45, kFirstDay = 0x21;  // 1980-01-01: equal files for equal data
  const uint64_t header = file_->size();
  std::string common;  // what both headers have
  PutZipNumber(kVersion64, 2, &common);
  PutZipNumber(uint16_t{1} << 11, 2, &common);  // the name is UTF-8
  PutZipNumber(kStored, 2, &common);
  PutZipNumber(0, 2, &common);
  PutZipNumber(kFirstDay, 2, &common);
  PutZipNumber(crc, 4, &common);
  PutZipNumber(kIn64, 4, &common);
  PutZipNumber(kIn64, 4, &common);
  PutZipNumber(name.size(), 2, &common);
  std::string sizes;
  PutZipNumber(bytes, 8, &sizes);
  PutZipNumber(bytes, 8, &sizes);
  const auto extra = [&](size_t length, std::string* to) {
    PutZipNumber(kExtra64, 2, to);
    PutZipNumber(length, 2, to);
    *to += sizes;
  };
  std::string local;
  PutZipNumber(kLocalHeader, 4, &local);
  local += common;
  PutZipNumber(4 + sizes.size(), 2, &local);
  local += name;
  extra(sizes.size(), &local);
  file_->Append(local.data(), local.size());

  PutZipNumber(kDirectoryEntry, 4, &directory_);
  constexpr uint64_t kUnix = 3, kPlainFile = 0100644;
  PutZipNumber(kUnix << 8 | kVersion64, 2, &directory_);
  directory_ += common;
  PutZipNumber(4 + sizes.size() + 8, 2, &directory_);
  PutZipNumber(0, 2 + 2 + 2, &directory_);  // comment, disk, kind of file
  PutZipNumber(kPlainFile << 16, 4, &directory_);
  PutZipNumber(kIn64, 4, &directory_);
  directory_ += name;
  extra(sizes.size() + 8, &directory_);
  PutZipNumber(header, 8, &directory_);
  ++members_;
}

void ZipWriter::Finish() {
  const uint64_t begin = file_->size(), end64 = begin + directory_.size();
  const uint64_t bytes = directory_.size();
  PutZipNumber(kEnd64, 4, &directory_);
  PutZipNumber(kEnd64Bytes - 12, 8, &directory_);
  PutZipNumber(45, 2, &directory_);
  PutZipNumber(45, 2, &directory_);
  PutZipNumber(0, 8, &directory_);  // disks
  PutZipNumber(members_, 8, &directory_);
  PutZipNumber(members_, 8, &directory_);
  PutZipNumber(bytes, 8, &directory_);
  PutZipNumber(begin, 8, &directory_);
  PutZipNumber(kEnd64Locator, 4, &directory_);
  PutZipNumber(0, 4, &directory_);
  PutZipNumber(end64, 8, &directory_);
  PutZipNumber(1, 4, &directory_);
  PutZipNumber(kEnd, 4, &directory_);
  PutZipNumber(0, 4, &directory_);
  PutZipNumber(std::min<uint64_t>(members_, 0xffff), 2, &directory_);
  PutZipNumber(std::min<uint64_t>(members_, 0xffff), 2, &directory_);
  PutZipNumber(kIn64, 4, &directory_);
  PutZipNumber(kIn64, 4, &directory_);
  PutZipNumber(0, 2, &directory_);
  file_->Append(directory_.data(), directory_.size());
}

}  // namespace trainer
