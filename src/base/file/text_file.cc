#include "trainer/base/file/text_file.h"

#include <string_view>

#include "trainer/base/file/file.h"

namespace trainer {

std::string ReadListFile(const std::string& path, uint64_t max_bytes) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string content = ReadFile(path, max_bytes);
  if (content.starts_with(kByteOrderMark)) content.erase(0, kByteOrderMark.size());
  return content;
}

}  // namespace trainer
