#include "trainer/storage/database_writer.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/file_error.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/format.h"

namespace trainer {
namespace {

// Removes what killed processes left of this database: folders of its hidden name.
void RemoveStrays(const std::string& temp) {
  const std::string name = FileNameOf(temp);
  const std::string mark = name.substr(0, name.find_last_not_of("0123456789") + 1);
  std::error_code failed;
  std::filesystem::directory_iterator entry(FolderOf(temp), failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const std::string other = entry->path().filename().string();
    if (!other.starts_with(mark) || other.size() == mark.size()) continue;
    const std::string number = other.substr(mark.size());
    if (number.size() > 9 || number.find_first_not_of("0123456789") != std::string::npos) continue;
    if (kill(std::stoi(number), 0) == 0 || errno != ESRCH) continue;
    std::error_code ignored;
    std::filesystem::remove_all(entry->path(), ignored);
  }
}

// Calls write(); its errors name the target. A full disk or file limit is EIO alone to LMDB.
template <class Write>
void NamingTarget(const std::string& path, const std::string& temp, const Write& write) {
  constexpr uint64_t kLittle = uint64_t{1} << 20;
  try {
    write();
  } catch (const FileError& error) {
    ThrowFileError(FileUse::kOutput, "create the folder", path, error.errno_value());
  } catch (const Error& error) {
    uint64_t free = 0;
    const bool cannot_write = error.code() == ErrorCode::kIo;
    if (cannot_write && FileOps::Posix().FreeBytes(FolderOf(path), &free) == 0 && free <= kLittle) {
      ThrowFileError(FileUse::kOutput, "write", path, ENOSPC);
    }
    rlimit limit{};
    if (cannot_write && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      ThrowFileError(FileUse::kOutput, "write", path, EFBIG);
    }
    std::string message = error.what();
    if (message.starts_with(temp)) message.replace(0, temp.size(), path);
    throw Error(error.code(), message);
  }
}

}  // namespace

std::unique_ptr<DbWriter> CreateDb(const std::string& backend, const std::string& path) {
  const Format* const format = FindFormat(backend);
  if (format == nullptr || format->create == nullptr) {
    throw Error(ErrorCode::kUsage, Join("unknown database backend '", EscapeControl(backend),
                                        "'; known: LEVELDB, LMDB"));
  }
  if (mkdir(path.c_str(), 0777) != 0) {
    const int error = errno;
    if (error != EEXIST) ThrowFileError(FileUse::kOutput, "create the folder", path, error);
    throw Error(
        ErrorCode::kCannotCreate, {path},
        "the folder already exists and is not overwritten; remove it or choose another name");
  }
  return format->create(path);
}

DatabaseWriter::DatabaseWriter(const std::string& backend, std::string path, int digits)
    : path_(std::move(path)), digits_(digits) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  temp_ = TempPathFor(path_);
  RefuseExisting(path_);
  RemoveStrays(temp_);
  NamingTarget(path_, temp_, [&] { writer_ = CreateDb(backend, temp_); });
}

DatabaseWriter::~DatabaseWriter() {
  if (writer_ == nullptr) return;
  writer_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(temp_, ignored);
}

void DatabaseWriter::Put(const caffe::Datum& datum) {
  std::string key = std::to_string(records_);
  const auto length = static_cast<size_t>(digits_);
  if (key.size() > length) {
    throw Error(ErrorCode::kUsage, {path_},
                Join("the set has more records than keys of ", digits_, " digits can number"));
  }
  key.insert(0, length - key.size(), '0');
  datum.SerializeToString(&value_);
  Put(key, value_);
}

void DatabaseWriter::Put(std::string_view key, std::string_view value) {
  NamingTarget(path_, temp_, [&] { writer_->Put(key, value); });
  ++records_;
}

void DatabaseWriter::Finish() {
  NamingTarget(path_, temp_, [&] { writer_->Commit(); });
  FileOps& ops = FileOps::Posix();
  if (ops.Rename(temp_, path_) != 0) {
    const int error = errno;
    if (error == ENOTEMPTY || error == EEXIST) RefuseExisting(path_);  // made meanwhile
    ThrowFileError(FileUse::kOutput, "rename", path_, error);
  }
  writer_.reset();
  SyncFolder(FolderOf(path_));
}

NewFolders::NewFolders(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  for (fs::path at = fs::absolute(path, failure).lexically_normal();
       !failure && !Exists(at.string()) && at.has_relative_path(); at = at.parent_path()) {
    if (at.has_filename()) made_.push_back(at.string());
  }
  if (!failure) fs::create_directories(path, failure);
  if (!failure) return;
  RemoveEmpty();
  throw Error(ErrorCode::kCannotCreate, {path},
              Join("cannot create the folder: ", failure.message()));
}

NewFolders::~NewFolders() { RemoveEmpty(); }

void NewFolders::RemoveEmpty() {
  for (const std::string& folder : made_) rmdir(folder.c_str());  // fails unless it is empty
}

void CheckRecordCount(const char* what, int64_t count) {
  constexpr int64_t kMaxRecords = 100000000;
  if (count < 1 || count > kMaxRecords) {
    throw Error(ErrorCode::kUsage, Join("the number of ", what, " images is ", count,
                                        "; it must be 1 to ", kMaxRecords));
  }
}

std::string DatabaseSuffix(const std::string& backend) { return "_" + LowerCase(backend); }

}  // namespace trainer
