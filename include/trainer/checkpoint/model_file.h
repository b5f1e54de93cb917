#pragma once
// Files of weights: .caffemodel, a binary NetParameter with the layers' blobs, or .caffemodel.h5,
// HDF5. Caffe reads ours and we read Caffe's; ours also carry their size and a CRC32C (net.proto,
// fields 20000 and 20100; in HDF5 before the data proper).

#include <cstdint>
#include <span>
#include <string>

#include "net.pb.h"
#include "trainer/base/file/file_ops.h"

namespace trainer {

// What identifies a file written by this program: its checksum field and its size.
struct FileChecksum {
  uint32_t crc32c = 0;
  uint64_t file_bytes = 0;
};

// Throws kConfig when a model of `bytes` bytes would not fit the binary format, whose limit is
// 2 GiB - 1. Call before the first iteration with four bytes per weight.
void CheckModelBytes(uint64_t bytes);

// Throws kConfig when layers of these names cannot be groups of one HDF5 file: a part between
// slashes that is empty or a dot, or a layer whose path is a blob of another.
void CheckHdf5Names(std::span<const std::string> layers);

// Whether files of this name are written as HDF5: it ends in .h5. For reading the content counts.
bool IsNamedAsHdf5(const std::string& path);

// Writes `path` so that it is whole or as it was before, whatever happens. Clears net's file_bytes
// and crc32c; makes no copy of the weights. Throws kConfig (too large, or as CheckHdf5Names), and
// as AtomicFile does.
FileChecksum WriteModel(const std::string& path, caffe::NetParameter& net,
                        FileOps& ops = FileOps::Posix());

// Reads a file of weights in any of Caffe's formats; layers of the old formats (V1, V0) are
// rewritten, with a line in the log. Blobs are not checked here, see ReadBlob. Throws kNoInput,
// kNoPermission, kIo; kBadSnapshot for an empty file and for one of ours that is cut or changed;
// kData for anything that is not a file of weights; kUsage for a solver state. From HDF5 come the
// layers' names and blobs alone; a blob that the file leaves out, because it is another layer's,
// comes back without shape and numbers.
caffe::NetParameter ReadModel(const std::string& path);

// The same with the layers as the file has them.
caffe::NetParameter ReadModelAsWritten(const std::string& path);

}  // namespace trainer
