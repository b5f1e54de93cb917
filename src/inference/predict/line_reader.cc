#include "predict/line_reader.h"

#include <unistd.h>

#include <cerrno>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {

bool LineReader::Next(std::string* line) {
  constexpr size_t kPiece = 1 << 16, kLongest = 1 << 20;
  size_t searched = at_;
  size_t newline;
  while ((newline = buffer_.find('\n', searched)) == std::string::npos) {
    buffer_.erase(0, at_);
    at_ = 0;
    searched = buffer_.size();
    if (searched > kLongest) {
      throw Error(ErrorCode::kData, {path_},
                  Join("a line is longer than ", kLongest, " bytes; is this a text file?"));
    }
    buffer_.resize(searched + kPiece);
    const ssize_t got = FileOps::Posix().Read(file_.get(), buffer_.data() + searched, kPiece);
    buffer_.resize(searched + static_cast<size_t>(got > 0 ? got : 0));
    if (got < 0) ThrowFileError(FileUse::kInput, "read", path_, errno);
    if (got > 0) continue;
    is_complete_ = buffer_.empty();
    end_ += buffer_.size();
    *line = std::move(buffer_);
    buffer_.clear();
    return !is_complete_;
  }
  line->assign(buffer_, at_, newline - at_);
  end_ += newline + 1 - at_;
  at_ = newline + 1;
  return true;
}

}  // namespace trainer
