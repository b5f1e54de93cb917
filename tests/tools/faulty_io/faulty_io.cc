// A library that is loaded before the others (LD_PRELOAD) and lets system calls fail, as a failing
// disk or file server does. Environment variables control it:
//
//   FAULTY_IO_PATH     affects files and folders whose path contains this part
//   FAULTY_IO_SWITCH   while this file exists, opening, reading and stat of them fail
//   FAULTY_IO_ERROR    with this number
//   FAULTY_IO_NETWORK  if set, all file systems say that they are NFS
//   FAULTY_IO_LOCK     opening and locking lock.mdb fails with this number
//   FAULTY_IO_FORK     a process that has forked continues after this many milliseconds
//   FAULTY_IO_SYNC     writing a file to the disk takes this many milliseconds
//   FAULTY_IO_KILL     a signal is sent after this many milliseconds

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <string>

namespace {

template <class Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

std::string Setting(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? "" : value;
}

void Pause(const char* setting) {
  usleep(1000 * static_cast<useconds_t>(atoi(Setting(setting).c_str())));
}

bool IsConcerned(const std::string& path) {
  static const std::string part = Setting("FAULTY_IO_PATH");
  return !part.empty() && path.find(part) != std::string::npos;
}

bool IsOn() {
  static const std::string file = Setting("FAULTY_IO_SWITCH");
  return !file.empty() && access(file.c_str(), F_OK) == 0;
}

int GivenError() {
  static const int error = atoi(Setting("FAULTY_IO_ERROR").c_str());
  return error;
}

std::string PathOf(int fd) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t bytes = readlink(link.c_str(), path, sizeof path);
  return bytes < 0 ? "" : std::string(path, static_cast<size_t>(bytes));
}

// Returns whether the call must fail, and sets errno if so.
bool Fails(const std::string& path) {
  if (!IsConcerned(path) || !IsOn()) return false;
  errno = GivenError();
  return true;
}

bool FailsLock(const std::string& path) {
  static const std::string lock = Setting("FAULTY_IO_LOCK");
  if (lock.empty() || !path.ends_with("lock.mdb")) return false;
  errno = atoi(lock.c_str());
  return true;
}

int Open(const char* name, const char* path, int flags, mode_t mode) {
  if (FailsLock(path) || Fails(path)) return -1;
  return Real<int (*)(const char*, int, ...)>(name)(path, flags, mode);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = static_cast<mode_t>(va_arg(more, int));
  va_end(more);
  return Open("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = static_cast<mode_t>(va_arg(more, int));
  va_end(more);
  return Open("open64", path, flags, mode);
}

ssize_t read(int fd, void* to, size_t bytes) {
  return Fails(PathOf(fd)) ? -1 : Real<decltype(&read)>("read")(fd, to, bytes);
}

ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  return Fails(PathOf(fd)) ? -1 : Real<decltype(&pread)>("pread")(fd, to, bytes, at);
}

ssize_t pread64(int fd, void* to, size_t bytes, off64_t at) {
  return Fails(PathOf(fd)) ? -1 : Real<decltype(&pread64)>("pread64")(fd, to, bytes, at);
}

int stat(const char* path, struct stat* facts) {
  return Fails(path) ? -1 : Real<int (*)(const char*, struct stat*)>("stat")(path, facts);
}

int statfs(const char* path, struct statfs* facts) {
  constexpr long kNfs = 0x6969;
  const int result = Real<int (*)(const char*, struct statfs*)>("statfs")(path, facts);
  if (!Setting("FAULTY_IO_NETWORK").empty()) facts->f_type = kNfs;
  return result;
}

int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  const bool locks = command == F_SETLK || command == F_SETLKW;
  if (locks && FailsLock(PathOf(fd))) return -1;
  return Real<int (*)(int, int, ...)>("fcntl")(fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  return fcntl(fd, command, argument);
}

pid_t fork() {
  const pid_t child = Real<decltype(&fork)>("fork")();
  if (child > 0) Pause("FAULTY_IO_FORK");
  return child;
}

int fsync(int fd) {
  Pause("FAULTY_IO_SYNC");
  return Real<decltype(&fsync)>("fsync")(fd);
}

int kill(pid_t process, int signal) {
  Pause("FAULTY_IO_KILL");
  return Real<decltype(&kill)>("kill")(process, signal);
}

}  // extern "C"
