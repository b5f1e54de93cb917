#include "trainer/storage/hdf5_list.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <utility>

#include "trainer/base/file/text_file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/blob.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/storage/path_redirects.h"

namespace trainer {

std::vector<ListedHdf5> ReadHdf5List(const std::string& list) {
  if (IsHdf5(list)) {
    throw Error(ErrorCode::kData, {list},
                "this is an HDF5 file, but source must be a text file that lists such files: write "
                "the path into a text file, such as train.txt, and give that as source");
  }
  constexpr uint64_t kMaxListBytes = 1 << 28;
  std::istringstream lines(ReadListFile(list, kMaxListBytes));
  std::vector<ListedHdf5> files;
  std::string line, path;
  for (int number = 1; std::getline(lines, line); ++number) {
    for (std::istringstream words(line); words >> path;) {
      files.push_back({ResolvePath(path, list), number});
    }
  }
  if (!files.empty()) return files;
  throw Error(ErrorCode::kData, {list},
              "this list of HDF5 files is empty; write one path per line");
}

std::string Hdf5ListPath(const std::string& path) {
  return path.substr(0, path.rfind('.')) + ".txt";
}

Hdf5List::Hdf5List(std::string list, std::vector<std::string> datasets)
    : list_(std::move(list)), datasets_(std::move(datasets)), row_dims_(datasets_.size()) {
  for (const ListedHdf5& file : ReadHdf5List(list_)) {
    files_.push_back({file.path, {list_, file.line}, 0, 0});
  }
  for (File& file : files_) Inspect(&file);
  if (total_ == 0) {
    throw Error(ErrorCode::kData, {list_}, "the files of this list have no rows");
  }
}

// Takes the rows' shapes from the first file and compares the others with it.
void Hdf5List::Inspect(File* file) try {
  const Hdf5Reader reader(ResolvedPath(file->path));
  const bool first = file == &files_.front();
  for (size_t i = 0; i < datasets_.size(); ++i) {
    const Hdf5Array array = reader.Array(datasets_[i]);
    if (array.dims().empty()) {
      throw Error(
          ErrorCode::kData, {file->path},
          Join("'", array.name(),
               "' is a single number, but the first axis must be the rows; store an array"));
    }
    if (first) {
      row_dims_[i].assign(array.dims().begin() + 1, array.dims().end());
      LOG_IF(INFO, i == 0) << "Datatype class: "
                           << (array.is_float() ? "H5T_FLOAT" : "H5T_INTEGER");
    }
    if (i == 0) file->rows = file->all_rows = array.dims()[0];
    CheckRow(array, i, *file);
  }
  total_ += file->rows;
} catch (const Error& error) {
  throw Error(error.code(), file->listed, error.what());
}

void Hdf5List::CheckRow(const Hdf5Array& array, size_t dataset, const File& file) const {
  const auto fail = [&](const auto&... why) {
    throw Error(ErrorCode::kData, {file.path},
                Join("'", EscapeControl(array.name()), "' ", why...));
  };
  const int64_t rows = array.dims()[0];
  if (rows != file.all_rows) {
    fail("has ", rows, " rows, but '", datasets_[0], "' has ", file.all_rows,
         "; all datasets of a file need the same number of rows");
  }
  if (rows > std::numeric_limits<uint32_t>::max()) {
    fail("has ", rows, " rows; a file can have at most 2^32 - 1: split it");
  }
  const std::vector<int64_t> row(array.dims().begin() + 1, array.dims().end());
  if (row != row_dims_[dataset]) {
    fail("has rows of shape ", ShapeText(row), ", but the first file has ",
         ShapeText(row_dims_[dataset]), "; all files must have the same shape");
  }
}

void Hdf5List::LimitRows(int64_t rows) {
  if (rows == 0 || rows >= total_) return;
  total_ = rows;
  for (File& file : files_) {
    file.rows = std::min(file.rows, rows);
    rows -= file.rows;
  }
}

std::vector<Hdf5Array> Hdf5List::ArraysOf(const Hdf5Reader& reader, size_t file) const {
  std::vector<Hdf5Array> arrays;
  for (size_t i = 0; i < datasets_.size(); ++i) {
    arrays.push_back(reader.Array(datasets_[i]));
    const std::vector<int64_t>& dims = arrays.back().dims();
    if (dims.empty() || dims[0] != files_[file].all_rows) {
      throw Error(ErrorCode::kData, {files_[file].path}, "the file was changed during the run");
    }
    CheckRow(arrays.back(), i, files_[file]);
  }
  return arrays;
}

}  // namespace trainer
