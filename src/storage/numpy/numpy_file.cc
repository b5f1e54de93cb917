#include "numpy/numpy_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "numpy/npy_header.h"
#include "numpy/zip_file.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/random_access_file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Copies the elements of an array in Fortran's order to row-major order.
std::string InRowMajorOrder(const NpyHeader& header, std::string_view elements) {
  std::string ordered(elements.size(), '\0');
  const auto size = static_cast<size_t>(header.bytes);
  std::vector<int64_t> index(header.dims.size(), 0);
  for (size_t at = 0; at < elements.size(); at += size) {
    int64_t place = 0;  // row-major, of the index
    for (size_t axis = 0; axis < index.size(); ++axis) {
      place = place * header.dims[axis] + index[axis];
    }
    std::memcpy(ordered.data() + static_cast<size_t>(place) * size, elements.data() + at, size);
    for (size_t axis = 0; axis < index.size() && ++index[axis] == header.dims[axis]; ++axis) {
      index[axis] = 0;
    }
  }
  return ordered;
}

[[noreturn]] void FailTruncated(const std::string& path, const std::string& name) {
  const std::string array = name.empty() ? "" : Join("array '", EscapeControl(name), "' ");
  throw Error(ErrorCode::kData, {path},
              array + "is truncated: it has fewer bytes than its shape needs");
}

bool MayBeBytes(const NpyHeader& header) {
  return header.kind == 'b' || (header.kind == 'u' && header.bytes == 1);
}

// An array in memory.
class NpyInMemory final : public StoredArray {
 public:
  NpyInMemory(const NpyHeader& header, std::string elements)
      : StoredArray(header.dims, MayBeBytes(header)),
        header_(header),
        elements_(header.fortran_order && header.dims.size() > 1 ? InRowMajorOrder(header, elements)
                                                                 : std::move(elements)) {}

  void ReadRows(int64_t first, int64_t rows, std::span<float> to) override {
    const auto count = static_cast<int64_t>(to.size());
    const int64_t row = rows == 0 ? 0 : count / rows;
    ConvertNpyElements(header_, elements_.data() + first * row * header_.bytes, count, to.data());
  }

 private:
  NpyHeader header_;
  std::string elements_;
};

// An array whose rows are read from its file.
class NpyInFile final : public StoredArray {
 public:
  NpyInFile(const NpyHeader& header, const RandomAccessFile& file)
      : StoredArray(header.dims, MayBeBytes(header)), header_(header), file_(file) {}

  void ReadRows(int64_t first, int64_t rows, std::span<float> to) override {
    const auto count = static_cast<int64_t>(to.size());
    const int64_t row = rows == 0 ? 0 : count / rows;
    buffer_.resize(to.size() * static_cast<size_t>(header_.bytes));
    const auto offset = header_.data_offset + static_cast<uint64_t>(first * row * header_.bytes);
    if (file_.Read(offset, buffer_.size(), buffer_.data()) != buffer_.size()) {
      FailTruncated(file_.path(), "");
    }
    ConvertNpyElements(header_, buffer_.data(), count, to.data());
  }

 private:
  NpyHeader header_;
  const RandomAccessFile& file_;
  std::string buffer_;
};

// One .npy file.
class NpyFile {
 public:
  explicit NpyFile(const std::string& path) : file_(path) {
    std::string head(std::min(file_.bytes(), kMostNpyHeaderBytes), '\0');
    head.resize(file_.Read(0, head.size(), head.data()));
    header_ = ParseNpyHeader(head, path, "");
    if (Bytes() > file_.bytes() - header_.data_offset) FailTruncated(path, "");
  }

  std::unique_ptr<StoredArray> Array() const {
    if (!header_.fortran_order || header_.dims.size() < 2) {
      return std::make_unique<NpyInFile>(header_, file_);
    }
    std::string elements(Bytes(), '\0');
    if (file_.Read(header_.data_offset, Bytes(), elements.data()) != Bytes()) {
      FailTruncated(file_.path(), "");
    }
    return std::make_unique<NpyInMemory>(header_, std::move(elements));
  }

 private:
  uint64_t Bytes() const { return static_cast<uint64_t>(header_.count * header_.bytes); }

  RandomAccessFile file_;
  NpyHeader header_;
};

// One or two .npy files.
class NpyFiles final : public ArrayFile {
 public:
  explicit NpyFiles(const std::vector<std::string>& files) : data_(files[0]) {
    if (files.size() > 1) labels_.emplace(files[1]);
  }

  bool Has(const std::string& name) const override {
    return name == "data" || (labels_ && name == "label");
  }
  std::vector<std::string> Names() const override {
    return labels_ ? std::vector<std::string>{"data", "label"} : std::vector<std::string>{"data"};
  }
  std::unique_ptr<StoredArray> Array(const std::string& name) const override {
    return labels_ && name == "label" ? labels_->Array() : data_.Array();
  }

 private:
  NpyFile data_;
  std::optional<NpyFile> labels_;
};

// The arrays of an .npz file.
class NpzFile final : public ArrayFile {
 public:
  // `chosen`: the arrays that are called data and label; empty: the names of the file count.
  NpzFile(const std::string& path, const std::vector<std::string>& chosen)
      : path_(path), zip_(path) {
    if (!chosen.empty()) renamed_ = {{"data", chosen[0]}};
    if (chosen.size() > 1) renamed_.emplace("label", chosen[1]);
  }

  bool Has(const std::string& name) const override { return Find(name).has_value(); }

  std::vector<std::string> Names() const override {
    if (renamed_.contains("label")) return {"data", "label"};
    if (!renamed_.empty()) return {"data"};
    return MemberNames();
  }

  std::unique_ptr<StoredArray> Array(const std::string& name) const override {
    const std::optional<size_t> index = Find(name);
    if (!index) FailMissing(name);
    const std::string content = zip_.Read(*index);
    const std::string shown = NameInFile(name);
    const NpyHeader header = ParseNpyHeader(content, path_, shown);
    const auto bytes = static_cast<uint64_t>(header.count * header.bytes);
    if (content.size() - header.data_offset < bytes) FailTruncated(path_, shown);
    return std::make_unique<NpyInMemory>(header, content.substr(header.data_offset, bytes));
  }

 private:
  static constexpr std::string_view kSuffix = ".npy";

  // Returns the names of the arrays in the file, whatever the path calls them.
  std::vector<std::string> MemberNames() const {
    std::vector<std::string> names = zip_.names();
    for (std::string& one : names) {
      if (one.ends_with(kSuffix)) one.resize(one.size() - kSuffix.size());
    }
    return names;
  }

  // Returns "" for a name that the path leaves out.
  std::string NameInFile(const std::string& name) const {
    if (renamed_.empty()) return name;
    const auto found = renamed_.find(name);
    return found == renamed_.end() ? "" : found->second;
  }

  std::optional<size_t> Find(const std::string& name) const {
    const std::string wanted = NameInFile(name);
    for (size_t i = 0; i < zip_.names().size(); ++i) {
      const std::string& member = zip_.names()[i];
      if (!wanted.empty() && (member == wanted || member == wanted + std::string(kSuffix))) {
        return i;
      }
    }
    return std::nullopt;
  }

  [[noreturn]] void FailMissing(const std::string& name) const {
    const std::vector<std::string> names = MemberNames();
    const std::string wanted = NameInFile(name).empty() ? name : NameInFile(name);
    const std::string example = names.size() > 1 ? Join(names[0], ",", names[1]) : "X,Y";
    throw Error(ErrorCode::kData, {path_},
                EscapeControl(Join("has no array '", wanted, "'; it has: ", JoinList(names),
                                   ". Name the arrays of data and labels as in ", path_, ":",
                                   example, ", or save the array as '", wanted, "'")));
  }

  std::string path_;
  ZipReader zip_;
  std::map<std::string, std::string> renamed_;
};

}  // namespace

std::unique_ptr<ArrayFile> OpenNumpyFile(const std::string& path) {
  const std::vector<std::string> files = NumpyFiles(path);
  if (files[0].ends_with(".npy")) return std::make_unique<NpyFiles>(files);
  const std::vector<std::string> chosen =
      files[0] == path ? std::vector<std::string>() : SplitList(path.substr(files[0].size() + 1));
  return std::make_unique<NpzFile>(files[0], chosen);
}

}  // namespace trainer
