#pragma once
// Files of weights: .caffemodel, a binary NetParameter with the layers' blobs. Caffe reads ours and
// we read Caffe's; ours also carry their size and a CRC32C (net.proto, fields 20000 and 20100).

#include <cstdint>
#include <string>

#include "net.pb.h"
#include "trainer/base/file_ops.h"

namespace trainer {

// What identifies a file written by this program: its checksum field and its size.
struct Seal {
  uint32_t crc32c = 0;
  uint64_t file_bytes = 0;
};

// Throws kConfig when a model of `bytes` bytes would not fit the format, whose limit is 2 GiB - 1.
// Call before the first iteration with four bytes per weight.
void CheckModelBytes(uint64_t bytes);

// Writes `path` so that it is whole or as it was before, whatever happens. Clears net's file_bytes
// and crc32c; makes no copy of the weights. Throws kConfig (too large), kUnavailable for a name
// that asks for HDF5 (.h5), and as AtomicFile does.
Seal WriteModel(const std::string& path, caffe::NetParameter& net, FileOps& ops = FileOps::Posix());

// Reads a file of weights in any of Caffe's formats; old layer formats (V1, V0) come back as they
// are. Blobs are not checked here, see ReadBlob. Throws kNoInput, kNoPermission, kIo;
// kBadSnapshot for an empty file and for one of ours that is cut or changed; kData for anything
// that is not a file of weights; kUsage for a solver state; kUnavailable for HDF5.
caffe::NetParameter ReadModel(const std::string& path);

}  // namespace trainer
