// Compiled without RTTI, like LevelDB: its classes have no type information to derive from.

#include "leveldb_env.h"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "trainer/base/file/file.h"

namespace leveldb {
// Files in memory. LevelDB's library has this function, but only some packages install its header.
Env* NewMemEnv(Env* base_env);
}  // namespace leveldb

namespace trainer {
namespace {

using leveldb::Status;

class SharedFileLock final : public leveldb::FileLock {
 public:
  explicit SharedFileLock(int file) : file_(FileOps::Posix(), file) {}

 private:
  FileHandle file_;  // closing it releases the lock
};

class ReadOnlyEnv final : public leveldb::EnvWrapper {
 public:
  explicit ReadOnlyEnv(bool locks)
      : EnvWrapper(leveldb::Env::Default()),
        memory_(leveldb::NewMemEnv(leveldb::Env::Default())),
        locks_(locks) {}

  // From now on no file can be written, so that a thread that starts to rewrite tables gives up.
  void Freeze() { frozen_ = true; }

  Status NewSequentialFile(const std::string& name, leveldb::SequentialFile** file) override {
    return EnvOf(name)->NewSequentialFile(name, file);
  }
  Status NewRandomAccessFile(const std::string& name, leveldb::RandomAccessFile** file) override {
    return EnvOf(name)->NewRandomAccessFile(name, file);
  }
  Status NewWritableFile(const std::string& name, leveldb::WritableFile** file) override {
    *file = nullptr;
    if (frozen_) return Status::IOError(name, "the database is open read-only");
    return memory_->NewWritableFile(name, file);
  }
  Status NewAppendableFile(const std::string& name, leveldb::WritableFile** file) override {
    return NewWritableFile(name, file);
  }
  bool FileExists(const std::string& name) override { return EnvOf(name)->FileExists(name); }
  Status GetFileSize(const std::string& name, uint64_t* size) override {
    return EnvOf(name)->GetFileSize(name, size);
  }
  Status GetChildren(const std::string& folder, std::vector<std::string>* names) override {
    const Status status = target()->GetChildren(folder, names);
    std::vector<std::string> in_memory;
    memory_->GetChildren(folder, &in_memory);
    names->insert(names->end(), in_memory.begin(), in_memory.end());
    return status;
  }
  // Files of the database stay.
  Status RemoveFile(const std::string& name) override {
    return memory_->FileExists(name) ? memory_->RemoveFile(name) : Status::OK();
  }
  Status RenameFile(const std::string& from, const std::string& to) override {
    return memory_->RenameFile(from, to);
  }
  Status CreateDir(const std::string&) override { return Status::OK(); }
  Status RemoveDir(const std::string&) override { return Status::OK(); }
  Status NewLogger(const std::string& name, leveldb::Logger** logger) override {
    return memory_->NewLogger(name, logger);
  }

  Status LockFile(const std::string& name, leveldb::FileLock** lock) override {
    *lock = nullptr;
    auto held = std::make_unique<SharedFileLock>(locks_ ? OpenAndLock(name) : -1);
    if (failure_ != 0) return Status::IOError("lock " + name, std::strerror(failure_));
    *lock = held.release();
    return Status::OK();
  }
  Status UnlockFile(leveldb::FileLock* lock) override {
    delete lock;
    return Status::OK();
  }

 private:
  leveldb::Env* EnvOf(const std::string& name) {
    return memory_->FileExists(name) ? memory_.get() : target();
  }

  // The lock belongs to the file descriptor, so that closing another descriptor of this process
  // does not release it. -1 if there is nothing to lock; sets failure_ if a writer holds the lock.
  int OpenAndLock(const std::string& name) {
    FileOps& ops = FileOps::Posix();
    const int file = ops.Open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    if (file < 0) return -1;
    struct flock lock {};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    if (fcntl(file, F_OFD_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES)) {
      failure_ = errno;
    }
    return file;
  }

  std::unique_ptr<leveldb::Env> memory_;  // holds the files that LevelDB writes
  bool locks_;
  int failure_ = 0;
  std::atomic<bool> frozen_ = false;
};

}  // namespace

void DeleteLevelDbEnv::operator()(leveldb::Env* env) const { delete env; }

Status OpenLevelDbReadOnly(const std::string& path, bool locks, ReadOnlyLevelDb* opened) {
  auto env = std::make_unique<ReadOnlyEnv>(locks);
  leveldb::Options options;
  options.env = env.get();
  options.create_if_missing = false;
  options.paranoid_checks = true;
  options.max_open_files = 100;
  options.write_buffer_size = size_t{1} << 30;  // the log becomes one table: Caffe's are 256 MiB
  leveldb::DB* db = nullptr;
  const Status status = leveldb::DB::Open(options, path, &db);
  env->Freeze();
  opened->db.reset(db);
  opened->env.reset(env.release());
  return status;
}

}  // namespace trainer
