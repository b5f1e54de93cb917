#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace trainer {

// Writes a file of arrays, which grow along their first axis. The file gets its name in Finish,
// complete; without Finish nothing is left on disk. Used by one thread.
class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  // Adds dims[0] rows to the array `name`, which the first call makes. The other lengths must be
  // the same in each call. `values` is row-major. Without lengths, the array of a NumPy file is one
  // number, for which there is one call.
  virtual void Append(const std::string& name, std::span<const int64_t> dims,
                      std::span<const float> values) = 0;
  virtual void Append(const std::string& name, std::span<const int64_t> dims,
                      std::span<const uint8_t> values) = 0;
  virtual void Finish() = 0;
};

// Opens a writer. FILE.npz and FILE.npy are NumPy's formats, any other name is an HDF5 file. An
// .npy file has one array, so only one name may be used. Throws as AtomicFile and Hdf5Appender do,
// and kUsage for a name that an .npz file cannot have.
std::unique_ptr<ArrayWriter> OpenArrayWriter(const std::string& path);

}  // namespace trainer
