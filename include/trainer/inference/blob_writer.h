#pragma once
// Values of a net as files for other programs.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace trainer {

// Takes rows of several blobs, pass by pass. What it writes appears under its name in Finish,
// whole; without Finish nothing stays. Used by one thread.
class BlobWriter {
 public:
  virtual ~BlobWriter() = default;

  // Adds dims[0] rows of blob number `blob`, row-major, (N, C, H, W) for four axes.
  virtual void Add(size_t blob, std::span<const int64_t> dims, std::span<const float> values) = 0;
  virtual void Finish() = 0;
};

// `backend` HDF5: one file, outs[0], with a dataset of floats for each blob, named as the blob;
// a blob's name with slashes makes groups. LMDB or LEVELDB: a database in outs[i] for blobs[i], one
// Datum for each row with float_data, keys %010d, as Caffe's extract_features writes.
// Throws kUsage for another number of outs, for a blob given twice, for blobs that cannot be in one
// HDF5 file ("a" and "a/b"); kCannotCreate for an out that exists already, unless it is an HDF5
// file and `replace`; as AtomicFile and NewDatabase do. Add throws kConfig for rows of more than
// three axes in a database.
std::unique_ptr<BlobWriter> MakeBlobWriter(const std::string& backend,
                                           const std::vector<std::string>& blobs,
                                           const std::vector<std::string>& outs, bool replace);

}  // namespace trainer
