#pragma once
// The format safetensors: eight bytes with the length of the header, the header, and the numbers of
// all tensors without gaps. The header is JSON:
//   {"__metadata__": {"format": "pt"},
//    "conv1.0": {"dtype": "F32", "shape": [20, 1, 5, 5], "data_offsets": [0, 2000]}}
// Files of this program have a CRC32C of the whole file in the metadata.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/file/random_access_file.h"

namespace trainer {

// The key in the header that does not name a tensor.
inline constexpr char kSafetensorsMetadata[] = "__metadata__";

// Describes a tensor in a file. `begin` and `end` count from the end of the header.
struct SafeTensor {
  std::string name, dtype;
  std::vector<int64_t> dims;
  uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafeTensor> tensors;  // in the order of their offsets
  std::map<std::string, std::string> metadata;
};

// Parses a header that is followed by `data_bytes` bytes. Throws kData with `path` unless `text` is
// an object of this format, each shape and type agrees with its offsets, and the tensors fill the
// bytes after the header without overlaps and gaps.
SafetensorsHeader ParseSafetensorsHeader(std::string_view text, uint64_t data_bytes,
                                         const std::string& path);

// Reads a file of tensors. Any thread may call const members.
class SafetensorsFile {
 public:
  // Opens the file and parses its header. Throws as ParseSafetensorsHeader does; kData also for a
  // header that is longer than the file or than kMostHeaderBytes; kBadSnapshot if a checksum that
  // this program wrote does not match; and as RandomAccessFile does.
  explicit SafetensorsFile(const std::string& path);

  static constexpr uint64_t kMostHeaderBytes = uint64_t{16} << 20;

  const std::vector<SafeTensor>& tensors() const { return header_.tensors; }
  // Reads the numbers of a tensor of floats into `to`, which must have room for them. Throws kData
  // for a tensor of another type, and kIo.
  void Read(const SafeTensor& tensor, std::span<float> to) const;

 private:
  // Throws kBadSnapshot if the checksum in the header's text differs from the file's.
  void VerifyChecksum(std::string text) const;

  RandomAccessFile file_;
  uint64_t data_at_ = 0;
  SafetensorsHeader header_;
};

// Describes an array to write. The caller or `own` owns `values`.
struct NamedTensor {
  std::string name;
  std::vector<int64_t> dims;
  std::span<const float> values;
  std::vector<float> own = {};
};

// Passes the bytes of a file with these tensors to `sink`, in pieces. Equal tensors give equal
// bytes.
void EmitSafetensors(std::span<const NamedTensor> tensors,
                     const std::function<void(const void* data, size_t bytes)>& sink);

}  // namespace trainer
