#include "trainer/base/file/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "trainer/base/file/memory_file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the words for a message, such as "a pipe". `mode` must belong to neither a regular file
// nor a folder.
const char* SpecialFileText(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISBLK(mode) ? "a block device" : "a character device";
}

// Throws kNoInput unless `mode` belongs to a regular file, because reading anything else may block
// for ever or never reach an end.
void RequireRegular(const std::string& path, mode_t mode) {
  if (S_ISREG(mode)) return;
  if (S_ISDIR(mode)) {
    const bool is_readable = faccessat(AT_FDCWD, SystemPath(path).c_str(), R_OK, AT_EACCESS) == 0;
    const int error = is_readable ? EISDIR : errno;
    ThrowFileError(FileUse::kInput, "read", AbsolutePath(path), error);
  }
  throw Error(ErrorCode::kNoInput, {AbsolutePath(path)},
              Join("cannot read: this is ", SpecialFileText(mode),
                   ", not a file; write its content to a file first"));
}

}  // namespace

std::string FolderOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string FileNameOf(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string JoinPath(const std::string& folder, const std::string& name) {
  if (folder.empty() || folder == "." || name.starts_with('/')) return name;
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

std::string AbsolutePath(const std::string& path) {
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed);
  return failed ? path : absolute.lexically_normal().string();
}

bool Exists(const std::string& path) {
  struct stat info {};
  return stat(SystemPath(path).c_str(), &info) == 0;
}

void RefuseToReplace(const std::string& path, bool force) {
  if (!Exists(path) || force) return;
  throw Error(ErrorCode::kCannotCreate, {path},
              "the file already exists; give another name, or --force to replace it");
}

bool IsMissing(const std::string& path) {
  struct stat info {};
  return stat(SystemPath(path).c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

bool IsDirectory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

namespace {

// Returns the name in `folder` that `name` probably misspells, or "". An ending such as
// ".prototxt", which many files share, is not compared, because it says nothing about how similar
// two names are.
std::string NearestName(const std::string& folder, const std::string& name) {
  constexpr size_t kMostNames = 10000;  // listing a folder takes time
  const std::string ending = std::filesystem::path(name).extension();
  std::vector<std::string> stems, others;
  std::error_code failed;
  std::filesystem::directory_iterator entry(folder, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const std::filesystem::path file = entry->path().filename();
    file.extension() == ending ? stems.push_back(file.stem()) : others.push_back(file);
    if (stems.size() + others.size() == kMostNames) break;
  }
  const std::string stem = Nearest(std::filesystem::path(name).stem().string(), stems);
  return stem.empty() ? Nearest(name, others) : stem + ending;
}

}  // namespace

std::string DidYouMeanPath(const std::string& path) {
  std::string found = path.starts_with('/') ? "/" : "";
  for (const std::string& name : SplitList(path, '/')) {
    std::string next = JoinPath(found, name);
    if (!Exists(next)) {
      const std::string near = NearestName(found.empty() ? "." : found, name);
      if (near.empty()) return "";
      next = JoinPath(found, near);
    }
    found = std::move(next);
  }
  return found == path || found.empty() ? "" : Join(" Did you mean '", EscapeControl(found), "'?");
}

uint64_t FileSize(const std::string& path) {
  struct stat info {};
  if (stat(SystemPath(path).c_str(), &info) != 0) {
    ThrowFileError(FileUse::kInput, "open", AbsolutePath(path), errno);
  }
  RequireRegular(path, info.st_mode);
  return static_cast<uint64_t>(info.st_size);
}

void RequireFiles(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) static_cast<void>(FileSize(path));
}

// The kind is checked before opening, since opening a device can have an effect, and again
// afterwards, since another file may have replaced it. With O_NONBLOCK, opening a pipe does not
// wait for a writer.
FileHandle OpenForReading(const std::string& path, FileOps& ops) {
  struct stat info {};
  const std::string system_path = SystemPath(path);
  if (stat(system_path.c_str(), &info) == 0) RequireRegular(path, info.st_mode);
  const int fd = ops.Open(system_path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
  if (fd < 0) ThrowFileError(FileUse::kInput, "open", AbsolutePath(path), errno);
  FileHandle file(ops, fd);
  if (fstat(fd, &info) == 0) RequireRegular(path, info.st_mode);
  return file;
}

std::string ReadFile(const std::string& path, uint64_t max_bytes, FileOps& ops) {
  const FileHandle file = OpenForReading(path, ops);
  const auto check = [&](uint64_t bytes) {
    if (bytes <= max_bytes) return;
    throw Error(ErrorCode::kData, {path},
                Join("the file is larger than ", max_bytes, " bytes, which is the limit"));
  };
  constexpr size_t kPiece = 1 << 16;
  std::string content;
  struct stat info {};
  if (fstat(file.get(), &info) == 0) {
    check(static_cast<uint64_t>(info.st_size));
    content.reserve(static_cast<size_t>(info.st_size) + kPiece);
  }
  for (size_t used = 0;;) {  // reads to the end, because files in /proc report a smaller size
    content.resize(used + kPiece);
    const ssize_t got = ops.Read(file.get(), content.data() + used, kPiece);
    if (got < 0) ThrowFileError(FileUse::kInput, "read", path, errno);
    used += static_cast<size_t>(got);
    check(used);
    if (got == 0) {
      content.resize(used);
      return content;
    }
  }
}

}  // namespace trainer
