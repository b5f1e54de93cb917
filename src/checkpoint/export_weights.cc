#include "trainer/checkpoint/export_weights.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/checkpoint/tensor_model.h"
#include "trainer/config/blob.h"

namespace trainer {
namespace {

// Adds the layers of `from`. A layer with weights replaces an existing layer with the same name.
void MergeLayers(caffe::NetParameter from, caffe::NetParameter* to) {
  if (to->layer_size() == 0) return to->Swap(&from);
  std::map<std::string, int> indices;
  for (int i = 0; i < to->layer_size(); ++i) indices.emplace(to->layer(i).name(), i);
  for (caffe::LayerParameter& layer : *from.mutable_layer()) {
    if (layer.blobs_size() == 0) continue;
    const auto found = indices.find(layer.name());
    (found == indices.end() ? to->add_layer() : to->mutable_layer(found->second))->Swap(&layer);
  }
}

}  // namespace

bool IsNamedAsWeights(const std::string& path) {
  return IsNamedAsTensorFile(path) || IsNamedAsHdf5(path) || path.ends_with(".caffemodel");
}

std::string ExportWeights(std::span<const std::string> files, const std::string& net_file,
                          const std::string& out) {
  const std::string& table = TensorNamesFile();
  const auto has_tensors = [&](const std::string& file) {
    return IsTensorFile(file) && HasTensorOf(table, file);
  };
  const bool names_out = !table.empty() && std::ranges::none_of(files, has_tensors);
  if (names_out && !IsNamedAsTensorFile(out)) {
    throw Error(ErrorCode::kUsage,
                "--names gives tensors the names of another program, but no file of --weights has "
                "them, and --out is not a .safetensors or .npz file");
  }
  caffe::NetParameter model;
  for (const std::string& file : files) MergeLayers(ReadModel(file, net_file), &model);
  int64_t blobs = 0, numbers = 0;
  for (const caffe::LayerParameter& layer : model.layer()) {
    for (int i = 0; i < layer.blobs_size(); ++i) {
      if (layer.blobs(i).ByteSizeLong() == 0) continue;  // another layer of the HDF5 file has it
      ++blobs;
      const BlobData blob = ReadBlob(layer.blobs(i), {files.back()}, BlobName(layer.name(), i));
      numbers += static_cast<int64_t>(blob.values.size());
    }
  }
  if (blobs == 0) {
    throw Error(ErrorCode::kData, {files.back()}, "the file has layers, but no weights to export");
  }
  if (names_out) {
    WriteTensorModel(out, model, table);
  } else {
    WriteModel(out, model);
  }
  return Join("Wrote ", out, ": ", Counted(blobs, "tensor"), ", ", numbers, " numbers");
}

}  // namespace trainer
