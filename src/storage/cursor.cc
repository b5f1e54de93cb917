#include "trainer/storage/cursor.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/path_redirects.h"
#include "trainer/storage/remote_cursor.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

struct Marker {
  std::string file;
  CursorAccess access;
};

std::map<std::string, Marker>& Markers() {
  static std::map<std::string, Marker> markers;
  return markers;
}

// Refuses what cannot be a database folder, so that no backend has to explain it.
void CheckFolder(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    const int error = errno;
    if (error == EACCES) {
      throw Error(ErrorCode::kNoPermission, {path}, "no permission to enter the folder above it");
    }
    const bool is_missing =
        error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG;
    if (!is_missing) ThrowFileError(FileUse::kInput, "open", path, error);
    throw Error(
        ErrorCode::kNoInput, {path},
        Join("no such database: ", std::strerror(error), " (tried ", AbsolutePath(path), ")"));
  }
  if (!S_ISDIR(info.st_mode)) {
    throw Error(ErrorCode::kData, {path},
                "this is a file, but a database is a folder; give the folder with the files of the "
                "database");
  }
}

// LMDB and LevelDB open what bears the right name, and would wait without end at a pipe.
void CheckEntries(const std::string& path) {
  std::error_code failed;
  for (fs::directory_iterator entry(path, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    const fs::file_type type = fs::status(entry->path(), failed).type();
    failed.clear();  // a link that leads nowhere is for the backend
    if (type != fs::file_type::fifo && type != fs::file_type::socket &&
        type != fs::file_type::character && type != fs::file_type::block) {
      continue;
    }
    throw Error(ErrorCode::kData, {path},
                Join("'", name,
                     "' in this folder is a pipe, a socket or a device; a database must have "
                     "regular files only"));
  }
}

std::unique_ptr<Cursor> Open(const std::string& backend, const std::string& path) {
  const auto& [marker, access] = Markers().at(backend);
  if (marker.empty()) return CursorRegistry::Get().Make(backend, path);
  CheckFolder(path);
  CheckEntries(path);
  std::error_code failure;
  if (!fs::exists(fs::path(path) / marker, failure)) {
    if (failure == std::errc::permission_denied) {
      throw Error(ErrorCode::kNoPermission, {path}, "no permission to enter the folder");
    }
    if (failure) ThrowFileError(FileUse::kInput, "enter the folder", path, failure.value());
    const std::string other = DetectBackend(path);
    throw Error(ErrorCode::kNoInput, {path},
                other.empty() ? Join("the folder has no file ", marker, ", so it is not an ",
                                     backend, " database")
                              : Join("the folder has no file ", marker, " and looks like an ",
                                     other, " database; write backend: ", other));
  }
  const std::string read = ResolvedPath(path);
  if (access == CursorAccess::kExclusive && HasRecordServer())
    return OpenRemoteCursor(backend, read);
  return CursorRegistry::Get().Make(backend, read);
}

}  // namespace

void CursorMarkers::Add(const std::string& backend, const std::string& marker,
                        CursorAccess access) {
  Markers()[backend] = {marker, access};
}

std::string DetectBackend(const std::string& path) {
  for (const auto& [backend, marker] : Markers()) {
    std::error_code ignored;
    if (marker.file.empty()) continue;
    if (fs::exists(fs::path(path) / marker.file, ignored)) return backend;
  }
  return "";
}

std::string BackendOf(const std::string& path) {
  const std::string backend = DetectBackend(path);
  if (!backend.empty()) return backend;
  if (IsDirectory(path)) {
    throw Error(
        ErrorCode::kNoInput, {path},
        "the folder is not a database: it has neither data.mdb (LMDB) nor CURRENT (LevelDB)");
  }
  return "LMDB";
}

std::unique_ptr<Cursor> OpenCursor(const std::string& backend, const std::string& path) {
  const CursorRegistry& registry = CursorRegistry::Get();
  if (!registry.Has(backend)) {
    throw Error(ErrorCode::kUsage, Join("unknown database backend '", EscapeControl(backend),
                                        "'; known: ", JoinList(registry.Names())));
  }
  return Open(backend, path);
}

std::string QuoteKey(std::string_view key) {
  constexpr size_t kLongest = 80;
  if (key.size() <= kLongest) return Join("'", EscapeControl(key), "'");
  return Join("'", EscapeControl(key.substr(0, kLongest)), "...'");
}

}  // namespace trainer
