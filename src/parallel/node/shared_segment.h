#pragma once
// A segment of memory that several processes map. It has no name, so it disappears with its last
// process, however that ends.

#include <sys/types.h>

#include <cstddef>

namespace trainer {

// A movable mapping. The memory is zero at first and completely allocated, so no access to it
// fails. Throws kResource, which says how much was requested and what to try.
class SharedSegment {
 public:
  SharedSegment() = default;
  // Creates a segment.
  explicit SharedSegment(size_t bytes);
  // Maps `fd` of this process and takes ownership of it.
  SharedSegment(int fd, size_t bytes);
  // Maps `fd` of another process of this node and user. Throws kUnavailable if the system does not
  // permit that.
  SharedSegment(pid_t process, int fd, size_t bytes);
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int fd() const { return fd_; }  // close-on-exec
  // Keeps the mapping, but other processes can no longer open it.
  void CloseDescriptor();

 private:
  // Maps fd_. On an error closes it and throws kResource.
  void Map();

  int fd_ = -1;
  size_t bytes_ = 0;
  char* data_ = nullptr;
};

}  // namespace trainer
