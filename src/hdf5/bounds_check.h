#pragma once

#include <hdf5.h>

#include <span>
#include <string>

namespace trainer {

// Why the dataset's bytes cannot all be in a file of `file_bytes` bytes, or that they are
// elsewhere;
// "" when they are there. `dims` is its shape, `wanted` the bytes of all elements together.
std::string BoundsProblem(hid_t data, std::span<const hsize_t> dims, size_t element_bytes,
                          uint64_t wanted, uint64_t file_bytes);

// Size of one chunk, decompressed; 0 if the dataset is not stored in chunks.
uint64_t ChunkBytes(hid_t data, size_t element_bytes);

}  // namespace trainer
