#include "trainer/checkpoint/model_file.h"

#include <climits>

#include "hdf5_files.h"
#include "sealed_file.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/config/upgrade/upgrade.h"
#include "trainer/hdf5/reader.h"

namespace trainer {

bool IsNamedAsHdf5(const std::string& path) { return path.ends_with(".h5"); }

void CheckModelBytes(uint64_t bytes) {
  if (bytes <= INT_MAX) return;
  throw Error(ErrorCode::kConfig,
              Join("the snapshot would have ", bytes,
                   " bytes, but a protobuf file can have at most 2 GiB - 1; set snapshot_format: "
                   "HDF5, or remove snapshot_diff, or use fewer or smaller layers"));
}

Seal WriteModel(const std::string& path, caffe::NetParameter& net, FileOps& ops) {
  AtomicFile file(path, ops);
  const Seal seal = WriteModelTo(net, &file);
  file.Commit();
  return seal;
}

Seal WriteModelTo(caffe::NetParameter& net, AtomicFile* file) {
  if (IsNamedAsHdf5(file->path())) return WriteHdf5Model(net, file);
  net.clear_file_bytes();
  net.clear_crc32c();
  return WriteSealed(net, file);
}

caffe::NetParameter ReadModel(const std::string& path) {
  caffe::NetParameter net = ReadModelAsWritten(path);
  LogUpgrades(UpgradeNet(&net, path));
  return net;
}

caffe::NetParameter ReadModelAsWritten(const std::string& path) {
  CheckSeal(path);
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
