#include "trainer/storage/array_writer.h"

#include "numpy/numpy_writer.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file_ops.h"
#include "trainer/hdf5/appender.h"
#include "trainer/storage/array_file.h"

namespace trainer {
namespace {

// Writes an HDF5 file under a temporary name, which Finish replaces.
class Hdf5ArrayWriter final : public ArrayWriter {
 public:
  explicit Hdf5ArrayWriter(const std::string& path)
      : path_(path), temp_{TempPathFor(path)}, file_(temp_.path, path) {}

  void Append(const std::string& name, std::span<const int64_t> dims,
              std::span<const float> values) override {
    file_.Append(name, dims, values);
  }
  void Append(const std::string& name, std::span<const int64_t> dims,
              std::span<const uint8_t> values) override {
    file_.Append(name, dims, values);
  }
  // Closes the file before it gets its name, so that a reader never sees an incomplete one.
  void Finish() override {
    file_.Close();
    PlaceWhole(temp_.path, path_);
  }

 private:
  // Removes the file of this name in its destructor.
  struct TempName {
    std::string path;
    ~TempName() { FileOps::Posix().Unlink(path); }
  };

  std::string path_;
  TempName temp_;
  Hdf5Appender file_;
};

}  // namespace

std::unique_ptr<ArrayWriter> OpenArrayWriter(const std::string& path) {
  if (IsNumpyPath(path)) return OpenNumpyWriter(path);
  return std::make_unique<Hdf5ArrayWriter>(path);
}

}  // namespace trainer
