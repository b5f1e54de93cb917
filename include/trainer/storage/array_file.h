#pragma once
// Files of arrays of numbers: HDF5, and NumPy's .npz and .npy.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainer {

// An array of an open ArrayFile, valid as long as the file. Used by one thread.
class StoredArray {
 public:
  StoredArray(std::vector<int64_t> dims, bool may_be_bytes)
      : dims_(std::move(dims)), may_be_bytes_(may_be_bytes) {}
  virtual ~StoredArray() = default;

  // The first axis is the rows. Empty for a single number.
  const std::vector<int64_t>& dims() const { return dims_; }
  // Returns the number of elements.
  int64_t Count() const;
  // Whether the elements are integers that may fit a byte.
  bool may_be_bytes() const { return may_be_bytes_; }
  // Reads `rows` rows from `first` on in row-major order; `to` has as many numbers as they hold.
  // Throws kIo, and kData for a damaged file.
  virtual void ReadRows(int64_t first, int64_t rows, std::span<float> to) = 0;

 private:
  std::vector<int64_t> dims_;
  bool may_be_bytes_;
};

// An open file. Used by one thread.
class ArrayFile {
 public:
  virtual ~ArrayFile() = default;
  virtual bool Has(const std::string& name) const = 0;
  // Returns the names of the arrays in the file, without those in groups of an HDF5 file.
  virtual std::vector<std::string> Names() const = 0;
  // Throws kData if the array is missing or does not hold numbers.
  virtual std::unique_ptr<StoredArray> Array(const std::string& name) const = 0;
};

// Opens `path`:
//   FILE.npz               the arrays have the names of the file; FILE.npz:X,Y calls X `data` and Y
//                          `label`, and FILE.npz:X has no labels
//   DATA.npy[,LABELS.npy]  the arrays are called `data` and `label`; a single file has every name
//   any other name         an HDF5 file
// Arrays of .npz files, and .npy files in Fortran's order, are kept in memory. Throws kNoInput,
// kNoPermission, kIo, and kData for a damaged file.
std::unique_ptr<ArrayFile> OpenArrayFile(const std::string& path);

// Whether the path names files of NumPy in one of these forms.
bool IsNumpyPath(std::string_view path);
// Returns the files that such a path names.
std::vector<std::string> NumpyFiles(const std::string& path);

}  // namespace trainer
