#include "trainer/checkpoint/model_file.h"

#include <climits>

#include "sealed_file.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer {

void CheckModelBytes(uint64_t bytes) {
  if (bytes <= INT_MAX) return;
  throw Error(ErrorCode::kConfig,
              Join("the snapshot would have ", bytes,
                   " bytes, but one protobuf file has 2 GiB - 1 at most; use fewer or smaller "
                   "layers, or leave out snapshot_diff"));
}

Seal WriteModel(const std::string& path, caffe::NetParameter& net, FileOps& ops) {
  if (path.ends_with(".h5")) {
    throw Error(ErrorCode::kUnavailable, {path},
                "this build writes no HDF5; set snapshot_format: BINARYPROTO");
  }
  net.clear_file_bytes();
  net.clear_crc32c();
  AtomicFile file(path, ops);
  const Seal seal = WriteSealed(net, &file);
  file.Commit();
  return seal;
}

caffe::NetParameter ReadModel(const std::string& path) {
  CheckSeal(path);
  if (SniffKind(path) == FileKind::kState) {
    throw Error(ErrorCode::kUsage, {path},
                "this is a solver state, not a file of weights; give the .caffemodel beside it, or "
                "go on training from the state with --snapshot");
  }
  caffe::NetParameter net;
  ParseFile(path, "file of weights (.caffemodel)", ErrorCode::kData, &net);
  if (net.layer_size() == 0 && net.layers_size() == 0) {
    throw Error(ErrorCode::kData, {path}, "the file holds no layers, so it is no file of weights");
  }
  return net;
}

}  // namespace trainer
