// The header of an array states its length, which is known only at the end. Elements therefore go
// to a temporary file for each array, and Finish copies them after their headers.

#include "numpy/numpy_writer.h"

#include <zlib.h>

#include <algorithm>
#include <list>
#include <utility>
#include <vector>

#include "numpy/npy_header.h"
#include "numpy/zip_file.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/random_access_file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

uint32_t NpyCrc(uint32_t crc, const void* bytes, size_t count) {
  return static_cast<uint32_t>(crc32_z(crc, static_cast<const Bytef*>(bytes), count));
}

class NumpyWriter final : public ArrayWriter {
 public:
  explicit NumpyWriter(const std::string& path) : path_(path), is_zip_(path.ends_with(".npz")) {
    static_cast<void>(AtomicFile(path_));  // throws now if the file cannot be created
  }

  void Append(const std::string& name, std::span<const int64_t> dims,
              std::span<const float> values) override {
    AppendElements(name, dims, "<f4", values.data(), values.size_bytes());
  }
  void Append(const std::string& name, std::span<const int64_t> dims,
              std::span<const uint8_t> values) override {
    AppendElements(name, dims, "|u1", values.data(), values.size_bytes());
  }

  void Finish() override {
    AtomicFile file(path_);
    ZipWriter zip(&file);
    for (SpooledArray& array : arrays_) {
      array.elements.Finish();
      const std::string header = NpyHeaderText(array.type, array.dims);
      if (is_zip_) {
        const uint64_t bytes = array.elements.size();
        const auto crc = static_cast<uint32_t>(crc32_combine(
            NpyCrc(0, header.data(), header.size()), array.crc, static_cast<z_off_t>(bytes)));
        zip.Begin(array.name + ".npy", header.size() + bytes, crc);
      }
      file.Append(header.data(), header.size());
      Copy(array.elements, &file);
    }
    if (is_zip_) zip.Finish();
    arrays_.clear();
    file.Commit();
  }

 private:
  struct SpooledArray {
    SpooledArray(std::string array_name, std::string_view element, std::vector<int64_t> row,
                 const std::string& path)
        : name(std::move(array_name)), type(element), dims(std::move(row)), elements(path) {}

    std::string name;
    std::string_view type;
    std::vector<int64_t> dims;
    AtomicFile elements;  // never committed, so that it is removed
    uint32_t crc = 0;
  };

  void AppendElements(const std::string& name, std::span<const int64_t> dims, std::string_view type,
                      const void* elements, size_t bytes) {
    SpooledArray& array = Find(name, dims, type);
    if (dims.size() != array.dims.size() || type != array.type ||
        !std::equal(dims.begin() + !dims.empty(), dims.end(), array.dims.begin() + !dims.empty())) {
      throw Error(ErrorCode::kData, {path_},
                  Join("the rows of '", EscapeControl(name), "' differ in shape or type"));
    }
    if (!dims.empty()) array.dims[0] += dims[0];
    array.crc = NpyCrc(array.crc, elements, bytes);
    array.elements.Append(elements, bytes);
  }

  SpooledArray& Find(const std::string& name, std::span<const int64_t> dims,
                     std::string_view type) {
    const auto found =
        std::ranges::find_if(arrays_, [&](const SpooledArray& one) { return one.name == name; });
    if (found != arrays_.end()) return *found;
    CheckName(name);
    std::vector<int64_t> row(dims.begin(), dims.end());
    if (!row.empty()) row[0] = 0;
    return arrays_.emplace_back(name, type, std::move(row), Join(path_, ".", arrays_.size()));
  }

  void CheckName(const std::string& name) const {
    if (!is_zip_ && !arrays_.empty()) {
      throw Error(ErrorCode::kUsage, Join(path_, ": an .npy file holds one array, not '",
                                          EscapeControl(arrays_.front().name), "' and '",
                                          EscapeControl(name), "'; write an .npz file"));
    }
    const bool escapes = ("/" + name + "/").find("/../") != std::string::npos;
    if (is_zip_ && (name.empty() || name.starts_with('/') || escapes || name.size() > 60000)) {
      throw Error(ErrorCode::kUsage, Join("'", EscapeControl(name),
                                          "' cannot be the name of an array in an .npz file; write "
                                          "an .npy file or a database"));
    }
  }

  static void Copy(const AtomicFile& from, AtomicFile* to) {
    const RandomAccessFile file(from.temp_path());
    std::string part(std::min<uint64_t>(from.size(), uint64_t{1} << 20), '\0');
    for (uint64_t at = 0; at < from.size(); at += part.size()) {
      part.resize(std::min<uint64_t>(part.size(), from.size() - at));
      if (file.Read(at, part.size(), part.data()) != part.size()) {
        throw Error(ErrorCode::kIo, {from.temp_path()}, "the file was changed while it was read");
      }
      to->Append(part.data(), part.size());
    }
  }

  std::string path_;
  bool is_zip_;
  std::list<SpooledArray> arrays_;
};

}  // namespace

std::unique_ptr<ArrayWriter> OpenNumpyWriter(const std::string& path) {
  return std::make_unique<NumpyWriter>(path);
}

}  // namespace trainer
