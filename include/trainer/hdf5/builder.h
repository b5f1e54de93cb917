#pragma once
// Builds an HDF5 file whose large arrays stay where they are. The file then comes out from its
// first byte to its last, so that it is written like any other, without a copy of the weights.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/hdf5/handle.h"

namespace trainer {

class SparseFile;

// Paths are "group/group/name"; missing groups are created. Equal content gives equal bytes, which
// HDF5 reads from 1.8 on. Used by one thread. Errors, naming file and path: kInternal if the
// library fails, kConfig if a path is in use for something else.
class Hdf5Builder {
 public:
  // `path` is for messages. The first `user_bytes` bytes (512, 1024, ...) are left to the caller.
  Hdf5Builder(const std::string& path, uint64_t user_bytes);
  ~Hdf5Builder();

  // Nothing happens when the group is there.
  void AddGroup(const std::string& path);
  // `values`, as many as `dims` say, must stay until the last Emit.
  void AddFloats(const std::string& path, std::span<const int64_t> dims,
                 std::span<const float> values);
  // One axis of length 1.
  void AddInt(const std::string& path, int32_t value);
  // A scalar of fixed length with a zero at the end.
  void AddText(const std::string& path, const std::string& text);
  // One axis of bytes.
  void AddBytes(const std::string& path, std::string_view bytes);

  // Ends the building. Returns the size of the file in bytes.
  uint64_t Finish();
  // After Finish: hands out the bytes from `from` to the end, in pieces. May be called again.
  void Emit(uint64_t from, const std::function<void(const void* data, size_t bytes)>& sink) const;

 private:
  struct Array {
    uint64_t offset, bytes;
    const void* data;
  };

  void AddArray(const std::string& path, int64_t type, int64_t space, const void* data,
                uint64_t bytes);
  [[noreturn]] void Refuse(const std::string& path) const;

  std::string path_;
  std::unique_ptr<SparseFile> storage_;
  Hdf5Handle make_groups_, plain_group_, plain_array_;  // properties
  Hdf5Handle file_;
  std::deque<std::string> small_;  // values of AddInt, AddText, AddBytes
  std::vector<Array> arrays_;
};

}  // namespace trainer
