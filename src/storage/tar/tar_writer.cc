#include "tar/tar_writer.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "tar/tar_reader.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kNameBytes = 100, kPrefixBytes = 155;
constexpr uint64_t kSizeLimit = uint64_t{1} << 33;  // eleven octal digits

struct Header {
  char name[kNameBytes];
  char mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
  char type;
  char link[100], magic[6], version[2], owner[32], group[32], major[8], minor[8];
  char prefix[kPrefixBytes];
  char unused[12];
};
static_assert(sizeof(Header) == kTarBlock);

template <size_t n>
void Octal(uint64_t value, char (&field)[n]) {
  std::snprintf(field, n, "%0*llo", static_cast<int>(n - 1),
                static_cast<unsigned long long>(value));
}

// Puts the name into its fields, divided at a slash where it is long. False where it does not fit.
bool SetName(std::string_view name, Header* header) {
  size_t slash = std::string_view::npos;
  if (name.size() > kNameBytes) {
    slash = name.find('/', name.size() - kNameBytes - 1);
    if (slash == std::string_view::npos || slash == 0 || slash > kPrefixBytes) return false;
    name.copy(header->prefix, slash);
    name.remove_prefix(slash + 1);
    if (name.empty()) return false;
  }
  name.copy(header->name, name.size());
  return true;
}

// "LENGTH path=NAME\n", the length counting itself.
std::string PaxRecord(std::string_view name) {
  const std::string rest = Join(" path=", name, "\n");
  size_t length = rest.size();
  while (std::to_string(length).size() + rest.size() != length) {
    length = std::to_string(length).size() + rest.size();
  }
  return std::to_string(length) + rest;
}

}  // namespace

void TarWriter::Add(std::string_view name, std::string_view content) {
  if (name.empty() || name.find('\0') != std::string_view::npos || content.size() >= kSizeLimit) {
    throw Error(ErrorCode::kData, {file_.path()},
                Join("'", EscapeControl(name.substr(0, 200)), "' (", content.size(),
                     " bytes) cannot be stored in a tar file: names must have no zero bytes, and "
                     "files must be smaller than 8 GiB"));
  }
  Header header{};
  if (SetName(name, &header)) return AddMember('0', name, content);
  AddMember('x', "pax_header", PaxRecord(name));
  // Readers take the name from the header before; this one is for those that do not know it.
  AddMember('0', name.substr(0, kNameBytes), content);
}

void TarWriter::AddMember(char type, std::string_view name, std::string_view content) {
  Header header{};
  SetName(name, &header);
  Octal(0644, header.mode);
  Octal(0, header.uid);
  Octal(0, header.gid);
  Octal(content.size(), header.size);
  Octal(0, header.mtime);
  header.type = type;
  std::memcpy(header.magic, "ustar", 6);
  std::memcpy(header.version, "00", 2);
  // The checksum of the header, with blanks in place of the checksum.
  std::memset(header.checksum, ' ', sizeof header.checksum);
  uint32_t sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) sum += reinterpret_cast<const uint8_t*>(&header)[i];
  std::snprintf(header.checksum, sizeof header.checksum, "%06o", sum);
  static constexpr std::array<char, kTarBlock> kZeros{};
  file_.Append(&header, kTarBlock);
  file_.Append(content.data(), content.size());
  file_.Append(kZeros.data(), (kTarBlock - content.size() % kTarBlock) % kTarBlock);
}

void TarWriter::Finish() {
  constexpr size_t kRecord = 10240;  // what tar writes at once, so that it is never surprised
  static constexpr std::array<char, kRecord> kZeros{};
  const uint64_t used = (file_.size() + 2 * kTarBlock) % kRecord;
  file_.Append(kZeros.data(), 2 * kTarBlock);
  if (used > 0) file_.Append(kZeros.data(), kRecord - used);
  file_.Finish();
}

}  // namespace trainer
