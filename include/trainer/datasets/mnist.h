#pragma once
// The files that MNIST comes in: one of images, one of labels, gzipped or not.

#include <cstdint>
#include <string>

namespace trainer {

// Writes the images to a database, in file order, with keys %08d. Returns their number.
//
// Format: big-endian 32-bit numbers: images 0x803, count, rows, columns, then rows * columns bytes
// per image; labels 0x801, count, then one byte per label. Source: yann.lecun.com/exdb/mnist.
// Errors: kNoInput, kNoPermission; kData naming the file and what is wrong: another kind of file,
// a size of 0 or above 16384, different counts, truncated, damaged or longer than its header says;
// as DatabaseWriter throws; kUsage for a count that CheckRecordCount refuses.
int64_t WriteIdx(const std::string& images, const std::string& labels, const std::string& database,
                 const std::string& backend = "LMDB");

}  // namespace trainer
