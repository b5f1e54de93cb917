#pragma once
// Arrays of HDF5 files that may hold anything: memory is taken only for bytes that were found.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/hdf5/handle.h"

namespace trainer {

class DiskFile;

// Whether the file holds HDF5, by its content: the signature at byte 0, or at 512, 1024, 2048, ...
// after a block of the user's. Throws as OpenForReading does.
bool IsHdf5(const std::string& path);

// One dataset of numbers of an open Hdf5Reader. One thread at a time; several readers at once.
class Hdf5Array {
 public:
  // The file and the dataset, for messages.
  const std::string& file() const { return file_; }
  const std::string& name() const { return name_; }
  const std::vector<int64_t>& dims() const { return dims_; }  // empty for a single number
  int64_t count() const { return count_; }
  bool is_float() const { return is_float_; }  // else whole numbers

  // Reads all numbers in row-major order, converted. `to` has count() elements.
  void Read(std::span<float> to) const;
  void Read(std::span<int32_t> to) const;
  void Read(std::span<uint8_t> to) const;
  // `rows` elements of the first axis from `first` on, `to` has as many numbers as they hold.
  void ReadRows(int64_t first, int64_t rows, std::span<float> to) const;

 private:
  friend class Hdf5Reader;
  void ReadAs(int64_t memory_type, size_t elements, void* to) const;
  [[noreturn]] void Fail() const;

  std::string file_, name_;
  ErrorCode damaged_ = ErrorCode::kData;
  const DiskFile* storage_ = nullptr;
  std::vector<int64_t> dims_;
  int64_t count_ = 1;
  bool is_float_ = true;
  Hdf5Handle data_;
};

// An open file. It is never locked, so that network file systems without locks do. Links into other
// files, soft links and data kept outside the file are refused.
//
// Errors: kNoInput, kNoPermission, kIo as OpenForReading; otherwise `damaged` with the file, the
// dataset, the reason and a way out.
class Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::string& path, ErrorCode damaged = ErrorCode::kData);
  ~Hdf5Reader();
  Hdf5Reader(Hdf5Reader&&) noexcept;
  Hdf5Reader& operator=(Hdf5Reader&&) noexcept;

  struct Member {
    std::string name;
    bool is_group;
    uint64_t address;  // the same for two names of one object
  };

  const std::string& path() const { return path_; }
  // `name` is a path from the root: "data/conv1/0".
  bool Has(const std::string& name) const;
  // The groups and datasets in a group ("" for the root), by name.
  std::vector<Member> Members(const std::string& group) const;
  // Throws also when the dataset holds no numbers or less data in the file than its shape says.
  Hdf5Array Array(const std::string& name) const;
  // A text of fixed length.
  std::string Text(const std::string& name) const;

 private:
  Hdf5Handle OpenObject(const std::string& name) const;
  std::vector<std::string> NamesIn(const Hdf5Handle& object, const std::string& group) const;
  void CheckLink(const std::string& name) const;
  Hdf5Handle OpenDataset(const std::string& name) const;
  Hdf5Handle OpenToHold(const std::string& name, uint64_t chunk_bytes) const;
  [[noreturn]] void Refuse(const std::string& group, const std::string& name) const;
  [[noreturn]] void Fail(const std::string& name, const std::string& problem) const;

  std::string path_;
  ErrorCode damaged_;
  std::unique_ptr<DiskFile> storage_;
  Hdf5Handle file_;
};

}  // namespace trainer
