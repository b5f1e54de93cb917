#pragma once
// Weights as named tensors, for Python: files in the formats safetensors and .npz. A blob has the
// name "LAYER.INDEX", or the one of a table.

#include <string>

#include "net.pb.h"
#include "trainer/base/file/file_ops.h"

namespace trainer {

// Returns whether a file has one of the formats. The content decides, except for a file that is
// called .safetensors or .npz. Throws kNoInput and similar errors if it cannot be read.
bool IsTensorFile(const std::string& path);

// Returns whether files of this name are written in one of the formats.
bool IsNamedAsTensorFile(const std::string& path);

// Returns whether the file has a tensor that the table names. Throws as ReadTensorModel.
bool HasTensorOf(const std::string& table, const std::string& path);

// Reads the layers' names and blobs. `table`: a table of names, "" for none. The table is used if
// the file has a tensor of it and, unless it `must` be used, a tensor without the name of a blob.
// With `must`, a file that has neither is an error. Tensors that the table does not name are left
// out, which is logged. Throws kData for a damaged file, for a name that is neither a blob's nor in
// the table, for safetensors of integers, and for a layer if the file has only some of its tensors;
// and as OpenArrayFile does.
caffe::NetParameter ReadTensorModel(const std::string& path, const std::string& table, bool must);

// Writes the blobs of all layers; `table` "": by the layers' names. With a table, a number in it
// that differs from the blob's divides the other blobs of the layer: BatchNorm stores its averages
// multiplied by such a blob. Throws kData for a layer that the table lacks, for two blobs of one
// name, for a name that is not UTF-8, for blobs that ReadBlob refuses, and as AtomicFile and
// OpenArrayWriter do.
void WriteTensorModel(const std::string& path, const caffe::NetParameter& net,
                      const std::string& table, FileOps& ops = FileOps::Posix());

// Returns the bytes of the safetensors file that WriteTensorModel writes without a table.
std::string SafetensorsOf(const caffe::NetParameter& net);

}  // namespace trainer
