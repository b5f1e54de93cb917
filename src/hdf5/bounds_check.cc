#include "bounds_check.h"

#include <algorithm>
#include <array>

#include "trainer/base/text/text.h"
#include "trainer/hdf5/handle.h"

namespace trainer {
namespace {

// The most that a filter of the library can have packed one byte from: deflate's limit is 1032.
constexpr uint64_t kMaxPacking = 1100;

std::string TooLittle(uint64_t wanted, uint64_t stored) {
  return Join("needs ", wanted, " bytes for its shape, but the file has only ", stored,
              "; it is incomplete, truncated or damaged");
}

std::string ContiguousProblem(hid_t data, hid_t properties, uint64_t wanted, uint64_t file_bytes) {
  if (H5Pget_external_count(properties) != 0) {
    return "stores its numbers in another file, and such references are not followed; copy them "
           "into this file (h5repack)";
  }
  const uint64_t stored = H5Dget_storage_size(data);
  const haddr_t offset = H5Dget_offset(data);
  if (stored < wanted || offset == HADDR_UNDEF) return TooLittle(wanted, stored);
  if (offset > file_bytes || file_bytes - offset < wanted) {
    return TooLittle(wanted, offset > file_bytes ? 0 : file_bytes - offset);
  }
  return "";
}

std::string ChunkProblem(hid_t data, hid_t properties, std::span<const hsize_t> dims,
                         size_t element_bytes, uint64_t file_bytes) {
  std::array<hsize_t, H5S_MAX_RANK> chunk{};
  if (H5Pget_chunk(properties, static_cast<int>(chunk.size()), chunk.data()) !=
      static_cast<int>(dims.size())) {
    return "has chunks that do not match its shape; the file is damaged";
  }
  uint64_t chunks = 1, chunk_bytes = element_bytes, needed = 0;
  bool overflow = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (chunk[i] == 0) return "has empty chunks; the file is damaged";
    const uint64_t along = dims[i] / chunk[i] + (dims[i] % chunk[i] != 0 ? 1 : 0);
    overflow |= __builtin_mul_overflow(chunks, along, &chunks);
    overflow |= __builtin_mul_overflow(chunk_bytes, chunk[i], &chunk_bytes);
  }
  overflow |= __builtin_mul_overflow(chunks, chunk_bytes, &needed);
  const uint64_t stored = std::min<uint64_t>(H5Dget_storage_size(data), file_bytes);
  const uint64_t packing = H5Pget_nfilters(properties) > 0 ? kMaxPacking : 1;
  if (overflow || needed / packing > stored) {
    return TooLittle(overflow ? UINT64_MAX : needed, stored);
  }
  const Hdf5Handle space(H5Dget_space(data));
  hsize_t there = 0;
  if (H5Dget_num_chunks(data, space.get(), &there) < 0 || there != chunks) {
    return Join("lacks ", chunks - std::min<uint64_t>(there, chunks), " of its ", chunks,
                " chunks; it is incomplete or damaged");
  }
  return "";
}

}  // namespace

std::string BoundsProblem(hid_t data, std::span<const hsize_t> dims, size_t element_bytes,
                          uint64_t wanted, uint64_t file_bytes) {
  if (wanted == 0) return "";
  const Hdf5Handle properties(H5Dget_create_plist(data));
  switch (H5Pget_layout(properties.get())) {
    case H5D_COMPACT:
      return H5Dget_storage_size(data) < wanted ? TooLittle(wanted, H5Dget_storage_size(data)) : "";
    case H5D_CONTIGUOUS:
      return ContiguousProblem(data, properties.get(), wanted, file_bytes);
    case H5D_CHUNKED:
      return ChunkProblem(data, properties.get(), dims, element_bytes, file_bytes);
    case H5D_VIRTUAL:
      return "is a virtual dataset of other files, and such references are not followed; copy the "
             "numbers into this file (h5repack)";
    default:
      return "is stored in an unknown way";
  }
}

uint64_t ChunkBytes(hid_t data, size_t element_bytes) {
  const Hdf5Handle properties(H5Dget_create_plist(data));
  if (H5Pget_layout(properties.get()) != H5D_CHUNKED) return 0;
  std::array<hsize_t, H5S_MAX_RANK> chunk{};
  const int axes = H5Pget_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
  uint64_t bytes = element_bytes;
  for (int i = 0; i < axes; ++i) bytes *= chunk[static_cast<size_t>(i)];
  return bytes;
}

}  // namespace trainer
