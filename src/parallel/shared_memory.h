#pragma once
// Memory that several processes see. It has no name, so that nothing of it is left when the last of
// them has ended, however it ended.

#include <sys/types.h>

#include <cstddef>

namespace trainer {

// A mapping. Movable. The memory is zero at first and all there, so that no access to it fails.
// Errors: kResource, saying how much was asked for and what to try.
class SharedMemory {
 public:
  SharedMemory() = default;
  explicit SharedMemory(size_t bytes);
  // The memory behind `fd` of this process, which it takes over.
  SharedMemory(int fd, size_t bytes);
  // That of another process of this machine and user. Throws kUnavailable where the system does not
  // let this process have it.
  SharedMemory(pid_t process, int fd, size_t bytes);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int fd() const { return fd_; }  // closed at exec
  // The mapping stays, others can no longer open it.
  void CloseDescriptor();

 private:
  void Map();

  int fd_ = -1;
  size_t bytes_ = 0;
  char* data_ = nullptr;
};

}  // namespace trainer
