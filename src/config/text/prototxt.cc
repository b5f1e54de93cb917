#include "trainer/config/text/prototxt.h"

#include <algorithm>
#include <string_view>

#include "checks/finite_values.h"
#include "text/all_errors.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/base/text/utf8.h"

namespace trainer {
namespace {

// The text of the largest nets in use has less than 1 MB. The parser needs up to 50 times the
// file's size, and this limit keeps that below the memory of any machine.
constexpr uint64_t kMaxBytes = uint64_t{4} << 20;
// Each of them costs about 800 bytes while the file is parsed. Large nets have a few thousand.
constexpr int64_t kMaxMessages = 100000;

[[noreturn]] void Refuse(const std::string& file, int line, const std::string& message) {
  throw Error(ErrorCode::kConfig, {file, line}, message);
}

// Returns the line, counted from 1, of an offset.
int LineAt(std::string_view text, size_t offset) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + offset, '\n'));
}

// Throws kConfig for a text that exceeds a limit of ParseText, is empty, or is not UTF-8. Only such
// text may reach the parser, which would report other bytes less clearly, or late.
void CheckText(const std::string& file, std::string_view text) {
  if (text.size() > kMaxBytes) {
    Refuse(file, 0,
           Join("the file is larger than ", kMaxBytes, " bytes, the limit for a text file"));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    Refuse(file, 0, "the file is empty; it must contain a solver or a net in protobuf text format");
  }
  if (text.starts_with("\x1f\x8b")) {
    Refuse(file, 0, "the file is compressed with gzip; uncompress it first, with gunzip");
  }
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    Refuse(file, LineAt(text, nul),
           "there is a zero byte: this is a binary file, not protobuf text format; is it a weights "
           "file?");
  }
  if (std::count(text.begin(), text.end(), '{') > kMaxMessages) {
    Refuse(file, 0,
           Join("there are more than ", kMaxMessages, " '{'; no net or solver needs so many"));
  }
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text.substr(at));
    if (length == 0) {
      Refuse(file, LineAt(text, at),
             "there are bytes that are not UTF-8; save the whole file as UTF-8, including its "
             "comments");
    }
    at += length;
  }
}

}  // namespace

std::unique_ptr<ParsedText> ParseTextString(const std::string& file, std::string content,
                                            google::protobuf::Message* message) {
  auto parsed = std::make_unique<ParsedText>();
  parsed->file = file;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (content.starts_with(kByteOrderMark)) content.erase(0, kByteOrderMark.size());
  CheckText(file, content);
  parsed->content = std::move(content);
  if (auto complaint = Parse(parsed.get(), message)) {
    ThrowProblems(std::move(parsed), *std::move(complaint), message);
  }
  RequireFinite(*message, &parsed->tree, file);
  return parsed;
}

void RefuseOnnx(const std::string& path) {
  if (!path.ends_with(".onnx") || !Exists(path)) return;
  throw Error(ErrorCode::kData, {path},
              Join("this is a model in the format ONNX; make a net and weights of it: trainer "
                   "import ",
                   FileNameOf(path), " --out=net.prototxt --weights=net.caffemodel"));
}

std::string ReadTextFile(const std::string& path) {
  RefuseOnnx(path);
  try {
    return ReadFile(path, kMaxBytes);
  } catch (const Error& error) {
    // An error in the content of this file is an error of the configuration.
    if (error.code() != ErrorCode::kData) throw;
    throw Error(
        ErrorCode::kConfig,
        Join(error.what(), ", for a net or a solver, which are text; is it a weights file?"));
  }
}

std::unique_ptr<ParsedText> ParseText(const std::string& path, google::protobuf::Message* message) {
  return ParseTextString(path, ReadTextFile(path), message);
}

std::string ResolvePath(const std::string& path, const std::string& mentioned_in) {
  if (Exists(path)) return path;
  const std::string beside = JoinPath(FolderOf(mentioned_in), path);
  return Exists(beside) ? beside : path;
}

std::string PathsTried(const std::string& path, const std::string& mentioned_in) {
  const std::string here = AbsolutePath(path);
  const std::string beside = AbsolutePath(JoinPath(FolderOf(mentioned_in), path));
  std::string near = DidYouMeanPath(path);
  if (near.empty()) near = DidYouMeanPath(JoinPath(FolderOf(mentioned_in), path));
  return Join(here, here == beside ? "" : Join(" and ", beside), near.empty() ? "" : ".", near);
}

}  // namespace trainer
