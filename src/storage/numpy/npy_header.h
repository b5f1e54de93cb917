#pragma once
// The header of NumPy's .npy format: the element type, the order and the shape of one array.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

struct NpyHeader {
  char kind = 'f';    // 'f' floating point, 'i' signed, 'u' unsigned, 'b' truth value
  int64_t bytes = 4;  // of an element
  bool big_endian = false;
  bool fortran_order = false;  // the first axis is the fastest
  std::vector<int64_t> dims;   // empty for a single number
  uint64_t data_offset = 0;    // of the first element in the file
  int64_t count = 1;           // elements
};

// The longest header that is read.
inline constexpr uint64_t kMostNpyHeaderBytes = 1 << 16;

// Parses the header at the beginning of `file`, which holds at least the header. Throws kData with
// `path` and the array's name for another format, an element type that is not a number, and a shape
// that is too large.
NpyHeader ParseNpyHeader(std::string_view file, const std::string& path, const std::string& name);

// Returns a header, padded to a multiple of 64 bytes, for little-endian elements: `type` is "<f4"
// or "|u1".
std::string NpyHeaderText(std::string_view type, std::span<const int64_t> dims);

// Converts `count` elements at `from` to floats.
void ConvertNpyElements(const NpyHeader& header, const char* from, int64_t count, float* to);

}  // namespace trainer
