#pragma once
// Files of weights: .caffemodel, a binary NetParameter with the layers' blobs, or .caffemodel.h5,
// HDF5. Caffe reads our files and this program reads Caffe's. Our files also contain their size and
// a CRC32C (net.proto, fields 20000 and 20100; in HDF5 in front of the data). Files for Python,
// .safetensors and .npz, see tensor_model.h.

#include <cstdint>
#include <span>
#include <string>

#include "net.pb.h"
#include "trainer/base/file/file_ops.h"

namespace trainer {

// The values that identify a file written by this program: its checksum field and its size.
struct FileChecksum {
  uint32_t crc32c = 0;
  uint64_t file_bytes = 0;
};

// Returns the checksum that this program stored in a file of weights or a solver state, and the
// file's size. Does not verify it, so that a large file costs no time. For any other file, returns
// the checksum of all its bytes. Throws kNoInput and similar errors if the file cannot be read.
FileChecksum IdentifyFile(const std::string& path);

// Throws kConfig if a model of `bytes` bytes exceeds the limit of the binary format, 2 GiB - 1.
// Call it before the first iteration with four bytes per weight.
void CheckModelBytes(uint64_t bytes);

// Throws kConfig if layers of these names cannot be groups of one HDF5 file, because a part between
// slashes is empty or a dot, or because the path of a layer is a blob of another layer.
void CheckHdf5Names(std::span<const std::string> layers);

// Returns whether files of this name are written as HDF5, i.e. the name ends in .h5. For reading,
// the content decides.
bool IsNamedAsHdf5(const std::string& path);

// Writes `path` completely, or leaves it unchanged, whatever happens. The end of the name selects
// the format: .h5, .safetensors, .npz; any other is a .caffemodel, for which it clears net's
// file_bytes and crc32c and does not copy the weights. Throws kConfig (too large, or as
// CheckHdf5Names), as AtomicFile does, and as WriteTensorModel does.
FileChecksum WriteModel(const std::string& path, caffe::NetParameter& net,
                        FileOps& ops = FileOps::Posix());

// Reads a file of weights in any of Caffe's formats. Layers of the old formats (V1, V0) are
// rewritten, and this is logged. Blobs are not checked here, see ReadBlob. Throws kNoInput,
// kNoPermission, kIo; kBadSnapshot for an empty file and for a truncated or changed file of this
// program; kData for any file that does not hold weights; kUsage for a solver state. From HDF5 only
// the layers' names and blobs are read; a blob that the file leaves out, because it belongs to
// another layer, is returned without shape and numbers.
//
// A file of tensors that has a tensor of the table TensorNamesFile is read by it. Without that
// table, a file whose tensors do not have names of blobs is read by the tensor_names.txt in the
// folder of `net_file`, the net that gets the weights, if there is one. Throws kData as
// ReadTensorModel does.
caffe::NetParameter ReadModel(const std::string& path, const std::string& net_file = "");

// Reads a file of weights as ReadModel does, but does not rewrite layers of the old formats.
caffe::NetParameter ReadModelAsWritten(const std::string& path, const std::string& net_file = "");

// The table of names with which ReadModel reads files of tensors, "" for none. The flag --names is
// bound to it. Set it before threads read.
std::string& TensorNamesFile();

}  // namespace trainer
