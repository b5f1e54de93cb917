#pragma once
// Lists of HDF5 files, as HDF5Data names them: each top is a dataset of that name in every file.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/hdf5/reader.h"

namespace trainer {

// A file of a list, and the line that names it.
struct ListedHdf5 {
  std::string path;
  int line = 0;  // counted from 1
};

// Reads a list of paths. A relative path is looked for in the working folder first, then in the
// list's. Throws kNoInput, kNoPermission, kIo; kData for an empty list and for an HDF5 file.
std::vector<ListedHdf5> ReadHdf5List(const std::string& list);

// Returns the name of the list that is written with an HDF5 file: train.txt for train.h5.
std::string Hdf5ListPath(const std::string& path);

// The files of a list and the shape of their rows. Const members may be called from any thread.
class Hdf5List {
 public:
  // Opens every file once and compares it with the first one. Throws kNoInput for a list or file
  // that does not exist; kData for an empty list, a dataset that is missing or not numeric,
  // different numbers of rows in one file, different shapes of rows, and no rows at all.
  Hdf5List(std::string list, std::vector<std::string> datasets);

  const std::string& list() const { return list_; }
  const std::vector<std::string>& datasets() const { return datasets_; }
  size_t count() const { return files_.size(); }
  const std::string& path(size_t file) const { return files_[file].path; }
  int64_t rows(size_t file) const { return files_[file].rows; }
  int64_t total() const { return total_; }  // rows of all files
  // Returns the shape of a row of that dataset.
  const std::vector<int64_t>& row_dims(size_t dataset) const { return row_dims_[dataset]; }

  // Leaves only the first `rows` rows of all files together; 0 leaves all.
  void LimitRows(int64_t rows);

  // Returns the datasets of an open file. Throws kData if they changed since the list was read.
  std::vector<Hdf5Array> ArraysOf(const Hdf5Reader& reader, size_t file) const;

 private:
  struct File {
    std::string path;
    SourceRef listed;  // the place where the list names it
    int64_t rows;      // that are read
    int64_t all_rows;  // of the file
  };

  void Inspect(File* file);
  void CheckRow(const Hdf5Array& array, size_t dataset, const File& file) const;

  std::string list_;
  std::vector<std::string> datasets_;
  std::vector<File> files_;
  std::vector<std::vector<int64_t>> row_dims_;  // per dataset, without the first axis
  int64_t total_ = 0;
};

}  // namespace trainer
