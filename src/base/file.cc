#include "trainer/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "trainer/base/text.h"

namespace trainer {

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
  return stat(path.c_str(), &info) == 0;
}

bool IsDirectory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

uint64_t FileSize(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    ThrowFileError(FileUse::kInput, "open", AbsolutePath(path), errno);
  }
  if (S_ISDIR(info.st_mode)) ThrowFileError(FileUse::kInput, "open", AbsolutePath(path), EISDIR);
  return static_cast<uint64_t>(info.st_size);
}

FileHandle OpenForReading(const std::string& path, FileOps& ops) {
  const int fd = ops.Open(path, O_RDONLY, 0);
  if (fd < 0) ThrowFileError(FileUse::kInput, "open", AbsolutePath(path), errno);
  FileHandle file(ops, fd);
  struct stat info {};
  if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    ThrowFileError(FileUse::kInput, "read", AbsolutePath(path), EISDIR);
  }
  return file;
}

std::string ReadFile(const std::string& path, uint64_t max_bytes, FileOps& ops) {
  const FileHandle file = OpenForReading(path, ops);
  std::string content;
  constexpr size_t kPiece = 1 << 16;
  for (size_t used = 0;;) {
    content.resize(used + kPiece);
    const ssize_t got = ops.Read(file.get(), content.data() + used, kPiece);
    if (got < 0) ThrowFileError(FileUse::kInput, "read", path, errno);
    used += static_cast<size_t>(got);
    if (used > max_bytes) {
      throw Error(ErrorCode::kData, {path},
                  Join("the file is larger than ", max_bytes, " bytes, the most that is read"));
    }
    if (got == 0) {
      content.resize(used);
      return content;
    }
  }
}

}  // namespace trainer
