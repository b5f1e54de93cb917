#pragma once
// The bytes of an HDF5 file for the library, never locked: network file systems refuse locks.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "trainer/base/file/file.h"
#include "trainer/hdf5/handle.h"

namespace trainer {

// Must outlive the library's use of it. Calls come one at a time.
class VfdFile {
 public:
  virtual ~VfdFile() = default;

  virtual uint64_t Size() const = 0;
  // Bytes past the end read as zero. False with errno when reading fails.
  virtual bool Read(uint64_t at, size_t bytes, void* to) = 0;
  // Tells the library that every write succeeded, because it could not close the file after a
  // failed one. The owner asks the storage for its error.
  virtual void Write(uint64_t at, size_t bytes, const void* from) = 0;
  virtual void Resize(uint64_t bytes) = 0;
};

class DiskFile final : public VfdFile {
 public:
  explicit DiskFile(FileHandle file);

  // errno of the first call that failed, or 0. Nothing is written after a failure.
  int error() const { return error_; }

  uint64_t Size() const override { return size_; }
  bool Read(uint64_t at, size_t bytes, void* to) override;
  void Write(uint64_t at, size_t bytes, const void* from) override;
  void Resize(uint64_t bytes) override;

 private:
  FileHandle file_;
  uint64_t size_ = 0;
  int error_ = 0;
};

// Pages in memory; those never written take no room and read as zero.
class SparseFile final : public VfdFile {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  uint64_t Size() const override { return size_; }
  bool Read(uint64_t at, size_t bytes, void* to) override;
  void Write(uint64_t at, size_t bytes, const void* from) override;
  void Resize(uint64_t bytes) override { size_ = bytes; }

 private:
  uint64_t size_ = 0;
  std::map<uint64_t, std::array<char, kPageBytes>> pages_;  // by number
};

// File access properties with `storage` as the file. Closing it closes all that is open in it.
Hdf5Handle MakeFileAccess(VfdFile& storage, const std::string& path);

}  // namespace trainer
