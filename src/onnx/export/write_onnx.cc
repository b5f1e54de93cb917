#include "trainer/onnx/write_onnx.h"

#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kExternalBytes = 1024;  // smaller constants stay in the model's file
// The size of a page, because runtimes map the second file into memory and a map begins at a page.
constexpr uint64_t kPage = 4096;

void SetExternal(const std::string& key, const std::string& value, onnx::TensorProto* tensor) {
  onnx::StringStringEntryProto& entry = *tensor->add_external_data();
  entry.set_key(key);
  entry.set_value(value);
}

// Moves the large constants to the file, each to the beginning of a page.
void MoveWeights(AtomicFile& file, onnx::GraphProto* graph) {
  for (onnx::TensorProto& tensor : *graph->mutable_initializer()) {
    if (tensor.raw_data().size() < kExternalBytes) continue;
    const std::string padding((kPage - file.size() % kPage) % kPage, '\0');
    file.Append(padding.data(), padding.size());
    SetExternal("location", FileNameOf(file.path()), &tensor);
    SetExternal("offset", Join(file.size()), &tensor);
    SetExternal("length", Join(tensor.raw_data().size()), &tensor);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    file.Append(tensor.raw_data().data(), tensor.raw_data().size());
    tensor.clear_raw_data();
  }
}

}  // namespace

std::vector<std::string> WriteOnnx(onnx::ModelProto* model, const std::string& path,
                                   const OnnxWriteOptions& options) {
  std::vector<std::string> files = {path};
  if (model->ByteSizeLong() > options.max_bytes) {
    files.push_back(path + ".data");
    AtomicFile weights(files.back());
    MoveWeights(weights, model->mutable_graph());
    weights.Commit();
  }
  WriteWhole(path, model->SerializeAsString());
  return files;
}

}  // namespace trainer
