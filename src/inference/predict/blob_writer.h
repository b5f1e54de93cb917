#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace trainer {

// Writes rows of several blobs to files, pass by pass. The files appear under their names in
// Finish, complete; without Finish nothing is left on disk. Not thread-safe.
class BlobWriter {
 public:
  virtual ~BlobWriter() = default;

  // Adds dims[0] rows of the blob with index `blob`, row-major, with four axes (N, C, H, W).
  virtual void Add(size_t blob, std::span<const int64_t> dims, std::span<const float> values) = 0;
  // Completes the files and gives them their names. Call once, after the last Add.
  virtual void Finish() = 0;
};

// Makes a writer for these blobs. Backend HDF5 writes one file, outs[0], with a float dataset per
// blob, named as the blob; slashes in the name of a blob create groups. If outs[0] is FILE.npz, it
// is NumPy's format instead; outs that are FILE.npy get one blob each. LMDB and LEVELDB write
// blobs[i] to the database outs[i]: one Datum with float_data per row, with keys %010d, as Caffe's
// extract_features does. Throws kUsage if the number of outs is wrong, a blob is named twice, or
// two blobs cannot be in the same HDF5 file ("a" and "a/b"). Throws kCannotCreate if an out exists,
// unless it is a file and `replace` is set. Throws as AtomicFile and DatabaseWriter. Add
// throws kConfig if the rows for a database have more than three axes.
std::unique_ptr<BlobWriter> MakeBlobWriter(const std::string& backend,
                                           const std::vector<std::string>& blobs,
                                           const std::vector<std::string>& outs, bool replace);

}  // namespace trainer
