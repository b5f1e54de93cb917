#include "trainer/storage/array_file.h"

#include <functional>
#include <numeric>
#include <utility>

#include "numpy/numpy_file.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

// A dataset of an HDF5 file.
class Hdf5StoredArray final : public StoredArray {
 public:
  explicit Hdf5StoredArray(Hdf5Array array)
      : StoredArray(array.dims(), !array.is_float()), array_(std::move(array)) {}
  void ReadRows(int64_t first, int64_t rows, std::span<float> to) override {
    array_.ReadRows(first, rows, to);
  }

 private:
  Hdf5Array array_;
};

class Hdf5ArrayFile final : public ArrayFile {
 public:
  explicit Hdf5ArrayFile(const std::string& path) : reader_(path) {}

  bool Has(const std::string& name) const override { return reader_.Has(name); }
  std::vector<std::string> Names() const override {
    std::vector<std::string> names;
    for (Hdf5Reader::Member& member : reader_.Members("")) {
      if (!member.is_group) names.push_back(std::move(member.name));
    }
    return names;
  }
  std::unique_ptr<StoredArray> Array(const std::string& name) const override {
    return std::make_unique<Hdf5StoredArray>(reader_.Array(name));
  }

 private:
  Hdf5Reader reader_;
};

}  // namespace

int64_t StoredArray::Count() const {
  return std::accumulate(dims_.begin(), dims_.end(), int64_t{1}, std::multiplies<>());
}

std::unique_ptr<ArrayFile> OpenArrayFile(const std::string& path) {
  if (IsNumpyPath(path)) return OpenNumpyFile(path);
  return std::make_unique<Hdf5ArrayFile>(path);
}

bool IsNumpyPath(std::string_view path) {
  return path.ends_with(".npy") || path.ends_with(".npz") ||
         path.find(".npz:") != std::string_view::npos;
}

std::vector<std::string> NumpyFiles(const std::string& path) {
  const size_t names = path.find(".npz:");
  if (names != std::string::npos) return {path.substr(0, names + 4)};
  const size_t second = path.find(".npy,");
  if (second == std::string::npos) return {path};
  return {path.substr(0, second + 4), path.substr(second + 5)};
}

}  // namespace trainer
