#include "trainer/storage/checksums.h"

#include <cstring>
#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"

namespace trainer {
namespace {

constexpr std::string_view kMark = "trainer crc32c\n";
constexpr uint64_t kMaxBytes = uint64_t{1} << 33;

template <class T>
void AppendNumber(T value, std::string* text) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  text->append(bytes, sizeof value);
}

}  // namespace

std::string ChecksumPath(const std::string& set) {
  return IsDirectory(set) ? JoinPath(set, "records.crc32c") : set + ".crc32c";
}

uint32_t RecordCrc(std::string_view key, std::string_view value) {
  const uint64_t length = key.size();  // so that no byte changes sides unseen
  uint32_t crc = Crc32c(&length, sizeof length);
  crc = Crc32c(key.data(), key.size(), crc);
  return Crc32c(value.data(), value.size(), crc);
}

void WriteChecksums(const std::string& path, const std::vector<uint32_t>& checksums) {
  std::string text(kMark);
  AppendNumber(uint64_t{checksums.size()}, &text);
  for (const uint32_t one : checksums) AppendNumber(one, &text);
  AppendNumber(Crc32c(text.data(), text.size()), &text);
  WriteWhole(path, text);
}

std::vector<uint32_t> ReadChecksums(const std::string& path) {
  const std::string text = ReadFile(path, kMaxBytes);
  const size_t head = kMark.size() + sizeof(uint64_t);
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, text.data() + at, sizeof value);
    return value;
  };
  uint64_t count = 0;
  bool good =
      text.starts_with(kMark) && text.size() >= head + 4 && text.size() % 4 == (head + 4) % 4;
  if (good) {
    std::memcpy(&count, text.data() + kMark.size(), sizeof count);
    good = count == (text.size() - head - 4) / 4 &&
           number(text.size() - 4) == Crc32c(text.data(), text.size() - 4);
  }
  if (!good) {
    throw Error(ErrorCode::kData, {path},
                "this is not a checksum file, or it is damaged; write it again: trainer dataset "
                "check SET --write_crc");
  }
  std::vector<uint32_t> checksums;
  for (uint64_t i = 0; i < count; ++i) checksums.push_back(number(head + i * 4));
  return checksums;
}

}  // namespace trainer
