#pragma once
// Files that hold one BlobProto: means, matrices.

#include <cstdint>
#include <string>
#include <vector>

#include "layers.pb.h"

namespace trainer {

// The numbers of a blob, row-major.
struct BlobValues {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// Reads a .binaryproto. The four old fields (num, channels, height, width) count before `shape`,
// double_data before data, as in Caffe. Throws kNoInput, kNoPermission, kIo; kData when it is no
// BlobProto, its count differs from its shape's or a number is not finite.
BlobValues ReadBlobFile(const std::string& path);

}  // namespace trainer
