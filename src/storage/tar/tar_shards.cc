#include "trainer/storage/tar_shards.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/text_file.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kMostFiles = 100000;
constexpr uint64_t kMostText = 1 << 24;  // bytes of a list

// The names that a pair of braces, "0000..0146" or "a,b", stands for.
std::vector<std::string> Choices(const std::string& source, std::string_view inside) {
  const size_t dots = inside.find("..");
  if (dots == std::string_view::npos) return SplitList(inside);
  const auto first = ParseNumber<uint64_t>(inside.substr(0, dots));
  const auto last = ParseNumber<uint64_t>(inside.substr(dots + 2));
  if (!first || !last) return SplitList(inside);
  if (*last < *first || *last - *first >= kMostFiles) {
    throw Error(
        ErrorCode::kData, {source},
        Join("{", EscapeControl(inside), "} must count up, to at most ", kMostFiles, " files"));
  }
  std::vector<std::string> numbers;
  for (uint64_t n = *first; n <= *last; ++n) {
    std::string digits = Join(n);
    if (digits.size() < dots) digits.insert(0, dots - digits.size(), '0');
    numbers.push_back(digits);
  }
  return numbers;
}

std::vector<std::string> ExpandBraces(const std::string& source, const std::string& pattern) {
  const size_t open = pattern.find('{'), close = pattern.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {pattern};
  std::vector<std::string> all;
  const std::string_view inside(pattern.data() + open + 1, close - open - 1);
  for (const std::string& choice : Choices(source, inside)) {
    const std::string one = pattern.substr(0, open) + choice + pattern.substr(close + 1);
    for (std::string& name : ExpandBraces(source, one)) {
      if (all.size() >= kMostFiles) {
        throw Error(ErrorCode::kData, {source},
                    Join("the pattern matches more than ", kMostFiles, " files"));
      }
      all.push_back(std::move(name));
    }
  }
  return all;
}

std::vector<std::string> ExpandWildcards(const std::string& pattern) {
  if (pattern.find_first_of("*?[") == pattern.npos) return {pattern};
  glob_t found{};
  std::vector<std::string> names;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    names.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return names;
}

constexpr std::string_view kGzip = "\x1f\x8b";

std::string ReadHead(const std::string& path) {
  const FileHandle file = OpenForReading(path);
  std::string head(512, ' ');
  const ssize_t got = FileOps::Posix().Read(file.get(), head.data(), head.size());
  head.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return head;
}

// A tar file has bytes that no text has, in its first header at the latest.
bool IsText(const std::string& head) {
  return !head.empty() && head.find('\0') == std::string::npos && !head.starts_with(kGzip);
}

bool IsTarName(std::string_view name) {
  return name.ends_with(".tar") || name.ends_with(".tar.gz") || name.ends_with(".tgz");
}

std::vector<std::string> ReadList(const std::string& path) {
  std::vector<std::string> names;
  for (const std::string& line : SplitList(ReadListFile(path, kMostText), '\n')) {
    const std::string beside = JoinPath(FolderOf(path), line);
    names.push_back(Exists(line) || !Exists(beside) ? line : beside);
  }
  if (!names.empty()) return names;
  throw Error(ErrorCode::kData, {path}, "the list of tar files is empty");
}

}  // namespace

bool HoldsTarShards(const std::string& path) {
  constexpr size_t kMagicAt = 257;
  if (IsTarName(path)) return true;
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return false;
  const std::string head = ReadHead(path);
  if (IsText(head)) {
    const std::vector<std::string> names = SplitList(head, '\n');
    return !names.empty() && IsTarName(names[0]);
  }
  return head.starts_with(kGzip) ||
         std::string_view(head).substr(std::min(head.size(), kMagicAt)).starts_with("ustar");
}

bool IsShardPattern(const std::string& source) {
  return !Exists(source) && source.find_first_of("{*?[") != std::string::npos;
}

std::vector<std::string> ExpandShards(const std::string& source) {
  if (!IsShardPattern(source)) {
    return IsText(ReadHead(source)) ? ReadList(source) : std::vector<std::string>{source};
  }
  std::vector<std::string> files;
  for (const std::string& name : ExpandBraces(source, source)) {
    for (std::string& file : ExpandWildcards(name)) files.push_back(std::move(file));
  }
  if (!files.empty()) return files;
  throw Error(ErrorCode::kNoInput, {source},
              Join("no file matches this pattern (searched ", AbsolutePath(FolderOf(source)), ")"));
}

}  // namespace trainer
