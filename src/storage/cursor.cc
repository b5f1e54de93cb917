#include "trainer/storage/cursor.h"

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/format.h"
#include "trainer/storage/path_redirects.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

std::atomic<DbLock> db_lock{DbLock::kAuto};

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

std::unique_ptr<Cursor> OpenFolder(const Format& format, const std::string& path) {
  CheckFolder(path);
  CheckEntries(path);
  std::error_code failure;
  if (!fs::exists(fs::path(path) / format.marker, failure)) {
    if (failure == std::errc::permission_denied) {
      throw Error(ErrorCode::kNoPermission, {path}, "no permission to enter the folder");
    }
    if (failure) ThrowFileError(FileUse::kInput, "enter the folder", path, failure.value());
    const Format* const other = FormatOfFolder(path);
    throw Error(ErrorCode::kNoInput, {path},
                other == nullptr
                    ? Join("the folder has no file ", format.marker, ", so it is not an ",
                           format.name, " database")
                    : Join("the folder has no file ", format.marker, " and looks like an ",
                           other->name, " database; write backend: ", other->name));
  }
  return format.open(ResolvedPath(path));
}

}  // namespace

std::unique_ptr<Cursor> OpenCursor(const std::string& format, const std::string& path) {
  const Format* const found = FindFormat(format);
  if (found == nullptr) {
    throw Error(ErrorCode::kUsage, Join("unknown database backend '", EscapeControl(format),
                                        "'; known: LEVELDB, LMDB, TAR"));
  }
  return *found->marker == '\0' ? found->open(path) : OpenFolder(*found, path);
}

std::optional<int32_t> Cursor::Label() const { return ReadDatumLabel(path(), Key(), Value()); }

void SetDbLock(DbLock lock) { db_lock = lock; }
DbLock GetDbLock() { return db_lock; }

std::string QuoteKey(std::string_view key) {
  constexpr size_t kLongest = 80;
  if (key.size() <= kLongest) return Join("'", EscapeControl(key), "'");
  return Join("'", EscapeControl(key.substr(0, kLongest)), "...'");
}

}  // namespace trainer
