#include "trainer/checkpoint/tensor_model.h"

#include <glog/logging.h>

#include <algorithm>
#include <climits>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "checksum_bytes.h"
#include "safetensors.h"
#include "tensor_names.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/blob.h"
#include "trainer/storage/array_file.h"

namespace trainer {
namespace {

constexpr char kSafetensorsEnd[] = ".safetensors", kNpzEnd[] = ".npz";

// Reads a file of named tensors.
class TensorFile {
 public:
  explicit TensorFile(std::string path) : path_(std::move(path)) {}
  virtual ~TensorFile() = default;

  const std::string& path() const { return path_; }
  // Returns the names in the order of the file.
  virtual std::vector<std::string> Names() const = 0;
  // Reads a tensor into an empty blob.
  virtual void Read(const std::string& name, caffe::BlobProto* blob) const = 0;

 protected:
  // Sets the shape, and returns room for the numbers. Throws kData if a blob cannot have so many.
  std::span<float> Resize(const std::string& name, const std::vector<int64_t>& dims, int64_t count,
                          caffe::BlobProto* blob) const {
    if (count > INT_MAX) {
      throw Error(ErrorCode::kData, {path_},
                  Join("tensor '", EscapeControl(name), "' has ", count,
                       " numbers; a blob can have at most 2^31 - 1"));
    }
    blob->mutable_shape();
    for (const int64_t dim : dims) blob->mutable_shape()->add_dim(dim);
    blob->mutable_data()->Resize(static_cast<int>(count), 0.0f);
    return {blob->mutable_data()->mutable_data(), static_cast<size_t>(count)};
  }

 private:
  std::string path_;
};

class SafetensorsTensors final : public TensorFile {
 public:
  explicit SafetensorsTensors(const std::string& path) : TensorFile(path), file_(path) {
    for (const SafeTensor& tensor : file_.tensors()) by_name_[tensor.name] = &tensor;
  }

  std::vector<std::string> Names() const override {
    std::vector<std::string> names;
    for (const SafeTensor& tensor : file_.tensors()) names.push_back(tensor.name);
    return names;
  }
  void Read(const std::string& name, caffe::BlobProto* blob) const override {
    const SafeTensor& tensor = *by_name_.at(name);
    int64_t count = 1;  // cannot overflow, because the file holds the numbers
    for (const int64_t dim : tensor.dims) count = dim == 0 ? 0 : count * dim;
    file_.Read(tensor, Resize(name, tensor.dims, count, blob));
  }

 private:
  SafetensorsFile file_;
  std::map<std::string, const SafeTensor*> by_name_;
};

class NpzTensors final : public TensorFile {
 public:
  explicit NpzTensors(const std::string& path) : TensorFile(path), file_(OpenArrayFile(path)) {}

  std::vector<std::string> Names() const override { return file_->Names(); }
  void Read(const std::string& name, caffe::BlobProto* blob) const override {
    const std::unique_ptr<StoredArray> array = file_->Array(name);
    const int64_t rows = array->dims().empty() ? 1 : array->dims()[0];
    array->ReadRows(0, rows, Resize(name, array->dims(), array->Count(), blob));
  }

 private:
  std::unique_ptr<ArrayFile> file_;
};

std::unique_ptr<TensorFile> OpenTensorFile(const std::string& path) {
  if (path.ends_with(kNpzEnd)) return std::make_unique<NpzTensors>(path);
  return std::make_unique<SafetensorsTensors>(path);
}

// Reads tensors named "LAYER.INDEX".
caffe::NetParameter ReadOwnNames(const TensorFile& file) {
  struct Layer {
    std::string name;
    std::vector<std::pair<int, std::string>> tensors;  // by index
  };
  std::vector<Layer> layers;
  std::map<std::string, size_t> known;
  for (const std::string& name : file.Names()) {
    const auto blob = ParseBlobName(name);
    if (!blob) {
      throw Error(ErrorCode::kData, {file.path()},
                  Join("tensor '", EscapeControl(name),
                       "' does not have the name of a blob, such as 'conv1.0'; if another program "
                       "wrote the file, give a table of its names with --names=FILE"));
    }
    const auto [found, is_new] = known.emplace(blob->first, layers.size());
    if (is_new) layers.push_back({blob->first, {}});
    layers[found->second].tensors.emplace_back(blob->second, name);
  }
  caffe::NetParameter net;
  for (Layer& layer : layers) {
    std::ranges::sort(layer.tensors);
    std::vector<int> indices;
    for (const auto& [index, name] : layer.tensors) indices.push_back(index);
    RequireAllBlobs(layer.name, indices, file.path());
    caffe::LayerParameter* const to = net.add_layer();
    to->set_name(layer.name);
    for (const auto& [index, name] : layer.tensors) file.Read(name, to->add_blobs());
  }
  return net;
}

// Reads the tensors that a table names.
class TableModelReader {
 public:
  TableModelReader(const TensorFile& file, const std::string& table)
      : file_(file), table_(table), layers_(ReadTensorNames(table)) {
    for (std::string& name : file.Names()) there_.insert(std::move(name));
  }

  // Returns whether the file has a tensor of the table.
  bool HasAny() const {
    for (const LayerTensors& layer : layers_) {
      if (CountThere(layer) > 0) return true;
    }
    return false;
  }

  caffe::NetParameter Read() {
    caffe::NetParameter net;
    for (const LayerTensors& layer : layers_) {
      if (CountThere(layer) > 0) ReadLayer(layer, net.add_layer());
    }
    std::vector<std::string> rest;
    std::ranges::set_difference(there_, read_, std::back_inserter(rest));
    if (rest.empty()) return net;
    LOG(INFO) << EscapeControl(Join("Ignoring ", Counted(rest.size(), "tensor"), " of ",
                                    file_.path(), " that ", table_,
                                    " does not name: ", FirstNames(rest)));
    return net;
  }

  // Throws kData, because the file has none of the tensors.
  [[noreturn]] void FailNone() const {
    const std::vector<std::string> names(there_.begin(), there_.end());
    throw Error(ErrorCode::kData, {file_.path()},
                EscapeControl(Join("has none of the tensors that ", table_,
                                   " names; it has: ", FirstNames(names))));
  }

 private:
  size_t CountThere(const LayerTensors& layer) const {
    size_t count = 0;
    for (const TensorName& blob : layer.blobs) {
      if (!blob.tensor.empty() && there_.contains(blob.tensor)) ++count;
    }
    return count;
  }

  void ReadLayer(const LayerTensors& layer, caffe::LayerParameter* to) {
    to->set_name(layer.layer);
    for (const TensorName& name : layer.blobs) {
      if (!name.tensor.empty()) {
        ReadTensor(layer, name, to->add_blobs());
        continue;
      }
      int64_t count = 1;
      for (const int64_t dim : name.blob_dims) count *= dim;
      const std::vector<int64_t> one{1};
      const std::vector<float> values(static_cast<size_t>(count), name.number);
      WriteBlob(name.blob_dims.empty() ? one : name.blob_dims, values, to->add_blobs());
    }
  }

  void ReadTensor(const LayerTensors& layer, const TensorName& name, caffe::BlobProto* blob) {
    const auto fail = [&](const std::string& why) {
      throw Error(ErrorCode::kData, {table_, name.line},
                  EscapeControl(Join("tensor '", name.tensor, "', which is ",
                                     BlobName(layer.layer, name.blob), ", ", why)));
    };
    if (!there_.contains(name.tensor)) {
      fail(Join("is not in ", file_.path(), ", which has other tensors of the layer"));
    }
    file_.Read(name.tensor, blob);
    read_.insert(name.tensor);
    const std::vector<int64_t> dims(blob->shape().dim().begin(), blob->shape().dim().end());
    if (!name.tensor_dims.empty() && name.tensor_dims != dims) {
      fail(Join("has the shape ", ShapeText(dims), " in ", file_.path(), " and ",
                ShapeText(name.tensor_dims), " in this table"));
    }
    if (name.blob_dims.empty()) return;
    int64_t count = 1;
    for (const int64_t dim : name.blob_dims) count *= dim;
    if (count != blob->data_size()) {
      fail(Join("has ", blob->data_size(), " numbers in ", file_.path(), ", and the blob ", count));
    }
    blob->mutable_shape()->clear_dim();
    for (const int64_t dim : name.blob_dims) blob->mutable_shape()->add_dim(dim);
  }

  const TensorFile& file_;
  const std::string& table_;
  std::vector<LayerTensors> layers_;
  std::set<std::string> there_, read_;  // names of tensors in the file
};

}  // namespace

bool IsNamedAsTensorFile(const std::string& path) {
  return path.ends_with(kSafetensorsEnd) || path.ends_with(kNpzEnd);
}

bool IsTensorFile(const std::string& path) {
  if (IsNamedAsTensorFile(path)) return true;
  constexpr size_t kLengthBytes = 8;
  const FileHandle file = OpenForReading(path);
  const std::string head = ReadPiece(file, path, 0, kLengthBytes + 1);
  return head.size() > kLengthBytes && head.back() == '{' &&
         FromLittleEndian(head.substr(0, kLengthBytes)) <= SafetensorsFile::kMostHeaderBytes;
}

bool HasTensorOf(const std::string& table, const std::string& path) {
  const std::unique_ptr<TensorFile> file = OpenTensorFile(path);
  return TableModelReader(*file, table).HasAny();
}

caffe::NetParameter ReadTensorModel(const std::string& path, const std::string& table, bool must) {
  const std::unique_ptr<TensorFile> file = OpenTensorFile(path);
  const std::vector<std::string> names = file->Names();
  const bool has_own_names = std::ranges::all_of(
      names, [](const std::string& name) { return ParseBlobName(name).has_value(); });
  if (must || (!table.empty() && !has_own_names)) {
    TableModelReader reader(*file, table);
    if (reader.HasAny()) return reader.Read();
    if (must && !has_own_names) reader.FailNone();
  }
  caffe::NetParameter net = ReadOwnNames(*file);
  if (net.layer_size() > 0) return net;
  throw Error(ErrorCode::kData, {path}, "the file has no tensors, so it is not a weights file");
}

}  // namespace trainer
