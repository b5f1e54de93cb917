#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "safetensors.h"
#include "tensor_names.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/text/text.h"
#include "trainer/base/text/utf8.h"
#include "trainer/checkpoint/tensor_model.h"
#include "trainer/config/blob.h"
#include "trainer/storage/array_writer.h"

namespace trainer {
namespace {

// Returns the shape that the net has for a blob. Files of old programs have four sizes for each
// blob, where leading ones are 1 if the net has fewer axes.
std::vector<int64_t> ShapeInNet(const BlobData& blob, const std::string& type, int index) {
  std::vector<int64_t> dims = blob.dims;
  if (!blob.legacy || (index == 0 && type != "InnerProduct")) return dims;
  const size_t axes = index == 0 ? 2 : 1;
  while (dims.size() > axes && dims.front() == 1) dims.erase(dims.begin());
  return dims;
}

// Collects the blobs of all layers as tensors. The net must outlive this object.
class TensorCollector {
 public:
  explicit TensorCollector(const std::string& path) : path_(path) {}

  // Adds the blobs of a layer under its own name.
  void Add(const caffe::LayerParameter& layer) {
    for (int i = 0; i < layer.blobs_size(); ++i) {
      BlobData blob = Read(layer, i);
      std::vector<int64_t> dims = ShapeInNet(blob, layer.type(), i);
      Push(Join(layer.name(), ".", i), std::move(dims), std::move(blob));
    }
  }

  // Adds the blobs of a layer under the names of a table.
  void Add(const caffe::LayerParameter& layer, const LayerTensors& names,
           const std::string& table) {
    if (layer.blobs_size() != static_cast<int>(names.blobs.size())) {
      throw Error(ErrorCode::kData, {table, names.blobs.front().line},
                  EscapeControl(Join("layer '", layer.name(), "' has ", layer.blobs_size(),
                                     " blobs, and ", names.blobs.size(), " in this table")));
    }
    float divisor = 1;
    for (const TensorName& name : names.blobs) {
      if (!name.tensor.empty() || name.number == 0) continue;
      const BlobData blob = Read(layer, name.blob);
      const float stored = blob.values.empty() ? 0 : blob.values[0];
      if (stored != 0) divisor = stored / name.number;
    }
    for (const TensorName& name : names.blobs) {
      if (name.tensor.empty()) continue;
      BlobData blob = Read(layer, name.blob);
      std::vector<int64_t> dims = name.tensor_dims;
      if (dims.empty()) dims = ShapeInNet(blob, layer.type(), name.blob);
      CheckCount(dims, blob, name, table);
      Push(name.tensor, std::move(dims), std::move(blob));
      if (divisor != 1) Divide(divisor);
    }
  }

  std::span<const NamedTensor> tensors() const { return tensors_; }

 private:
  BlobData Read(const caffe::LayerParameter& layer, int index) const {
    if (layer.blobs(index).ByteSizeLong() > 0) {
      return ReadBlob(layer.blobs(index), {path_}, BlobName(layer.name(), index));
    }
    throw Error(ErrorCode::kData, {path_},
                EscapeControl(Join(BlobName(layer.name(), index),
                                   " belongs to another layer, and this HDF5 file has it only "
                                   "there; export the .caffemodel instead")));
  }

  static void CheckCount(const std::vector<int64_t>& dims, const BlobData& blob,
                         const TensorName& name, const std::string& table) {
    size_t count = 1;
    for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
    if (count == blob.values.size()) return;
    throw Error(
        ErrorCode::kData, {table, name.line},
        EscapeControl(Join("tensor '", name.tensor, "' has the shape ", ShapeText(dims),
                           " in this table, but the blob has ", blob.values.size(), " numbers")));
  }

  // Throws kData for a name that the formats do not allow.
  void Push(std::string name, std::vector<int64_t> dims, BlobData blob) {
    const auto fail = [&](const std::string& why) {
      throw Error(ErrorCode::kData, {path_},
                  Join("tensor '", EscapeControl(name), "' cannot be written: ", why));
    };
    if (!IsUtf8(name)) fail("its name is not UTF-8; rename the layer");
    if (name == kSafetensorsMetadata) fail("this name belongs to the format; change the table");
    if (!names_.insert(name).second) {
      fail("two blobs have this name; rename one of the layers, or change the table");
    }
    NamedTensor& tensor = tensors_.emplace_back();
    tensor.name = std::move(name);
    tensor.dims = std::move(dims);
    tensor.values = blob.values;
    if (blob.widened != nullptr) widened_.push_back(std::move(blob.widened));
  }

  // Divides the numbers of the last tensor.
  void Divide(float divisor) {
    NamedTensor& tensor = tensors_.back();
    tensor.own.assign(tensor.values.begin(), tensor.values.end());
    for (float& value : tensor.own) value /= divisor;
    tensor.values = tensor.own;
  }

  const std::string& path_;  // path of the file to write, for messages
  std::vector<NamedTensor> tensors_;
  std::set<std::string> names_;                    // names in tensors_
  std::vector<std::unique_ptr<float[]>> widened_;  // numbers to which tensors_ refer
};

void CollectByTable(const caffe::NetParameter& net, const std::string& table,
                    TensorCollector* collector) {
  std::map<std::string, LayerTensors> names;
  for (LayerTensors& layer : ReadTensorNames(table)) {
    std::string name = layer.layer;
    names.emplace(std::move(name), std::move(layer));
  }
  for (const caffe::LayerParameter& layer : net.layer()) {
    if (layer.blobs_size() == 0) continue;
    const auto found = names.find(layer.name());
    if (found == names.end()) {
      throw Error(ErrorCode::kData, {table},
                  EscapeControl(Join("the table does not name layer '", layer.name(),
                                     "', which has weights")));
    }
    collector->Add(layer, found->second, table);
  }
}

}  // namespace

void WriteTensorModel(const std::string& path, const caffe::NetParameter& net,
                      const std::string& table, FileOps& ops) {
  TensorCollector collector(path);
  if (table.empty()) {
    for (const caffe::LayerParameter& layer : net.layer()) collector.Add(layer);
  } else {
    CollectByTable(net, table, &collector);
  }
  if (path.ends_with(".npz")) {
    const std::unique_ptr<ArrayWriter> writer = OpenArrayWriter(path);
    for (const NamedTensor& tensor : collector.tensors()) {
      writer->Append(tensor.name, tensor.dims, tensor.values);
    }
    return writer->Finish();
  }
  AtomicFile file(path, ops);
  EmitSafetensors(collector.tensors(),
                  [&](const void* data, size_t bytes) { file.Append(data, bytes); });
  file.Commit();
}

std::string SafetensorsOf(const caffe::NetParameter& net) {
  const std::string name = "weights.safetensors";
  TensorCollector collector(name);
  for (const caffe::LayerParameter& layer : net.layer()) collector.Add(layer);
  std::string bytes;
  EmitSafetensors(collector.tensors(), [&](const void* data, size_t count) {
    bytes.append(static_cast<const char*>(data), count);
  });
  return bytes;
}

}  // namespace trainer
