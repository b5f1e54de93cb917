#include "trainer/inference/predict/image_paths.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "predict/folder_walk.h"
#include "predict/line_reader.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the line without the labels at its end, if it has any. A line that is itself the name of
// a file stays whole.
std::string PathInLine(std::string line) {
  for (;;) {
    const size_t blank = line.find_last_of(" \t");
    if (blank == std::string::npos || Exists(line)) return line;
    if (!ParseNumber<double>(std::string_view(line).substr(blank + 1))) return line;
    line.erase(line.find_last_not_of(" \t", blank) + 1);
  }
}

// Returns a copy of the descriptor of the standard input, because a FileHandle closes its own.
FileHandle StandardInput() {
  const int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) ThrowFileError(FileUse::kInput, "read", "the standard input", errno);
  return {FileOps::Posix(), fd};
}

}  // namespace

ImagePaths::ImagePaths(std::vector<std::string> words, const std::string& list)
    : words_(std::move(words)) {
  if (std::ranges::find(words_, "") != words_.end()) {
    throw Error(ErrorCode::kUsage, "the name of an image is empty");
  }
  if (list.empty()) return;
  list_name_ = list == "-" ? "the standard input" : list;
  list_ = std::make_unique<LineReader>(list == "-" ? StandardInput() : OpenForReading(list),
                                       list_name_);
}

ImagePaths::ImagePaths(ImagePaths&&) noexcept = default;
ImagePaths::~ImagePaths() = default;

bool ImagePaths::Next(std::string* path) {
  if (NextOfWords(path) || NextOfList(path)) {
    ++count_;
    return true;
  }
  if (count_ > 0) return false;
  if (list_ != nullptr) {
    throw Error(ErrorCode::kData, {list_name_},
                "the list names no images; write one path per line");
  }
  throw Error(ErrorCode::kData, {words_.empty() ? "" : words_[0]},
              "no images found: the folder and those below it have no JPEG, PNG, TIFF, PGM or PPM "
              "files");
}

bool ImagePaths::NextOfWords(std::string* path) {
  for (;;) {
    if (walk_ != nullptr && walk_->Next(path)) return true;
    walk_.reset();
    if (next_word_ == words_.size()) return false;
    *path = words_[next_word_++];
    if (!IsDirectory(*path)) return true;
    walk_ = std::make_unique<FolderWalk>(*path);
  }
}

bool ImagePaths::NextOfList(std::string* path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string line;
  while (list_ != nullptr && list_->Next(&line)) {
    if (std::exchange(is_first_line_, false) && line.starts_with(kByteOrderMark)) {
      line.erase(0, kByteOrderMark.size());
    }
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    *path = PathInLine(line);
    return true;
  }
  return false;
}

}  // namespace trainer
