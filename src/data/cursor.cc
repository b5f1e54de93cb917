#include "trainer/data/cursor.h"

#include <glog/logging.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <thread>

#include "hosted_cursor.h"
#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/base/io_wait.h"
#include "trainer/base/left_threads.h"
#include "trainer/base/text.h"
#include "trainer/data/staged.h"

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
      throw Error(ErrorCode::kNoPermission, {path}, "the folder above it may not be entered");
    }
    if (MayPass(error, FileWas::kUnknown)) ThrowFileError(FileUse::kInput, "open", path, error);
    throw Error(
        ErrorCode::kNoInput, {path},
        Join("no such database: ", std::strerror(error), " (looked for ", AbsolutePath(path), ")"));
  }
  if (!S_ISDIR(info.st_mode)) {
    throw Error(ErrorCode::kData, {path},
                "not a folder; a database is a folder: give the one that holds its files");
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
                     "' in it is a pipe, a socket or a device; a database is made of "
                     "files only"));
  }
}

std::unique_ptr<Cursor> Open(const std::string& backend, const std::string& path) {
  const auto& [marker, access] = Markers().at(backend);
  if (marker.empty()) return CursorRegistry::Get().Make(backend, path);
  CheckFolder(path);
  CheckEntries(path);
  std::error_code failure;
  if (!fs::exists(fs::path(path) / marker, failure)) {
    if (failure && MayPass(failure.value(), FileWas::kUnknown)) {
      ThrowFileError(FileUse::kInput, "enter the folder", path, failure.value());
    }
    if (failure) throw Error(ErrorCode::kNoPermission, {path}, "the folder may not be entered");
    const std::string other = DetectBackend(path);
    throw Error(ErrorCode::kNoInput, {path},
                other.empty() ? Join("the folder has no file ", marker, ", so it is not an ",
                                     backend, " database")
                              : Join("the folder has no file ", marker, " and looks like an ",
                                     other, " database; write backend: ", other));
  }
  const std::string read = ReadPathOf(path);
  if (access == CursorAccess::kExclusive && HasRecordHost()) return OpenHostedCursor(backend, read);
  return CursorRegistry::Get().Make(backend, read);
}

// Looks again and again, so that it can be seen that the thread that waits does not hang itself.
bool IsReadyWithin(std::chrono::milliseconds time,
                   const std::future<std::unique_ptr<Cursor>>& cursor) {
  constexpr std::chrono::milliseconds kTurn{100};
  const auto end = std::chrono::steady_clock::now() + time;
  while (cursor.wait_for(kTurn) != std::future_status::ready) {
    if (std::chrono::steady_clock::now() >= end) return false;
  }
  return true;
}

// The same in a thread of its own: a server, or its lock daemon, that does not answer holds a call
// without end. The thread is then left to it.
std::unique_ptr<Cursor> OpenInTime(const std::string& backend, const std::string& path) {
  constexpr std::chrono::seconds kLong{10};
  const std::chrono::milliseconds timeout = IoTimeout();
  if (timeout.count() == 0) return Open(backend, path);
  std::packaged_task<std::unique_ptr<Cursor>()> task([=] { return Open(backend, path); });
  std::future<std::unique_ptr<Cursor>> cursor = task.get_future();
  std::thread thread(std::move(task));
  if (timeout > kLong && !IsReadyWithin(kLong, cursor)) {
    LOG(WARNING) << EscapeControl(path) << ": opening the database takes long: the file system or "
                 << "its locks do not answer";
  }
  if (IsReadyWithin(timeout, cursor)) {
    thread.join();  // it has nothing left to do, and holds nothing once it has ended
    return cursor.get();
  }
  thread.detach();
  NoteThreadLeftBehind();
  throw Error(ErrorCode::kIo, {path},
              Join("opening the database has not come back within ", timeout.count() / 1000.0,
                   " s (--io_timeout): the file system or its locks do not answer; mend the mount, "
                   "or copy the database to a disk of this machine. An LMDB that nothing writes to "
                   "needs no lock: --db_lock=off"));
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

std::unique_ptr<Cursor> OpenCursor(const std::string& backend, const std::string& path) {
  const CursorRegistry& registry = CursorRegistry::Get();
  if (!registry.Has(backend)) {
    throw Error(ErrorCode::kUsage, Join("unknown database backend '", EscapeControl(backend),
                                        "'; known: ", JoinList(registry.Names())));
  }
  return ReadPatiently(FileWas::kUnknown, [&] { return OpenInTime(backend, path); });
}

std::string QuoteKey(std::string_view key) {
  constexpr size_t kLongest = 80;
  if (key.size() <= kLongest) return Join("'", EscapeControl(key), "'");
  return Join("'", EscapeControl(key.substr(0, kLongest)), "...'");
}

}  // namespace trainer
