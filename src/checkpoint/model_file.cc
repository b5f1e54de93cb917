#include "trainer/checkpoint/model_file.h"

#include <algorithm>
#include <climits>
#include <optional>
#include <set>
#include <string_view>

#include "checksum_bytes.h"
#include "checksummed_file.h"
#include "hdf5_files.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/tensor_model.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/config/upgrade/upgrade.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

constexpr char kTensorNamesName[] = "tensor_names.txt";

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns the path of the table next to the net, or "" if it does not exist.
std::string FindTensorNames(const std::string& net_file) {
  if (net_file.empty()) return "";
  const std::string path = JoinPath(FolderOf(net_file), kTensorNamesName);
  return Exists(path) ? path : "";
}

// Throws kData for the files of other programs that have to be converted, with the command.
void RefuseOtherPrograms(const std::string& path) {
  RefuseOnnx(path);
  if (path.ends_with(".pth") || path.ends_with(".pt")) {
    throw Error(ErrorCode::kData, {path},
                "this is a file of PyTorch, which only Python reads; save the weights there: "
                "safetensors.torch.save_file(model.state_dict(), 'weights.safetensors')");
  }
}

}  // namespace

std::string& TensorNamesFile() {
  static std::string file;
  return file;
}

bool IsNamedAsHdf5(const std::string& path) { return path.ends_with(".h5"); }

void CheckModelBytes(uint64_t bytes) {
  if (bytes <= INT_MAX) return;
  throw Error(ErrorCode::kConfig,
              Join("the snapshot would have ", bytes,
                   " bytes, but a protobuf file can have at most 2 GiB - 1; set snapshot_format: "
                   "HDF5, or remove snapshot_diff, or use fewer or smaller layers"));
}

void CheckHdf5Names(std::span<const std::string> layers) {
  const std::set<std::string> names(layers.begin(), layers.end());
  for (const std::string& name : layers) {
    const auto refuse = [&](const std::string& why) {
      throw Error(ErrorCode::kConfig,
                  Join("layer '", EscapeControl(name), "' cannot be saved as HDF5: ", why,
                       "; rename the layer, or set snapshot_format: BINARYPROTO"));
    };
    for (size_t begin = 0; begin != std::string::npos;) {
      const size_t end = name.find('/', begin);
      const std::string part = name.substr(begin, end - begin);
      if (part.empty() || part == "." || part.find('\0') != std::string::npos) {
        refuse("a part of its name between slashes is empty or a dot");
      }
      if (begin > 0 && IsNumber(part) && names.contains(name.substr(0, begin - 1))) {
        refuse(Join("blob ", part, " of layer '", name.substr(0, begin - 1),
                    "' would have the same path"));
      }
      begin = end == std::string::npos ? end : end + 1;
    }
  }
}

FileChecksum WriteModel(const std::string& path, caffe::NetParameter& net, FileOps& ops) {
  if (IsNamedAsTensorFile(path)) {
    WriteTensorModel(path, net, "", ops);
    return IdentifyFile(path);
  }
  AtomicFile file(path, ops);
  const FileChecksum seal = WriteModelTo(net, &file);
  file.Commit();
  return seal;
}

FileChecksum IdentifyFile(const std::string& path) {
  if (const std::optional<FileChecksum> stored = StoredChecksum(path)) return *stored;
  const uint64_t size = FileSize(path);
  return {ChecksumOf(OpenForReading(path), path, 0, size), size};
}

caffe::NetParameter ReadModel(const std::string& path, const std::string& net_file) {
  caffe::NetParameter net = ReadModelAsWritten(path, net_file);
  LogUpgrades(UpgradeNet(&net, path));
  return net;
}

caffe::NetParameter ReadModelAsWritten(const std::string& path, const std::string& net_file) {
  RefuseOtherPrograms(path);
  if (IsTensorFile(path)) {
    const bool must = !TensorNamesFile().empty();
    return ReadTensorModel(path, must ? TensorNamesFile() : FindTensorNames(net_file), must);
  }
  VerifyChecksum(path);
  if (SniffKind(path) == FileKind::kState) {
    throw Error(ErrorCode::kUsage, {path},
                "this is a solver state, not a weights file; give the .caffemodel of the same "
                "snapshot, or resume training from the state with --snapshot");
  }
  if (IsHdf5(path)) return ReadHdf5Model(path);
  caffe::NetParameter net;
  ParseFile(path, "weights file (.caffemodel)", ErrorCode::kData, &net);
  if (net.layer_size() == 0 && net.layers_size() == 0) {
    throw Error(ErrorCode::kData, {path}, "the file has no layers, so it is not a weights file");
  }
  return net;
}

}  // namespace trainer
