#include "predict/hdf5_blob_writer.h"

#include <unistd.h>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"

namespace trainer {
namespace {

// Throws kUsage if a blob's name has an empty part or the part '.', or if one name is a folder of
// another ('a' and 'a/b'). The caller has refused duplicates.
void RequireHdf5Names(const std::vector<std::string>& blobs) {
  for (const std::string& blob : blobs) {
    const std::string parts = "/" + blob + "/";
    for (const char* bad : {"//", "/./"}) {
      if (parts.find(bad) == std::string::npos) continue;
      throw Error(ErrorCode::kUsage, Join("blob '", EscapeControl(blob),
                                          "' cannot be the name of an HDF5 dataset: a part between "
                                          "slashes is empty or a dot; use --backend=lmdb"));
    }
    for (const std::string& other : blobs) {
      if (!other.starts_with(blob + "/")) continue;
      throw Error(ErrorCode::kUsage,
                  Join("blobs '", EscapeControl(blob), "' and '", EscapeControl(other),
                       "' cannot be in the same HDF5 file: the first would be both a dataset and a "
                       "group; write them to two files"));
    }
  }
}

// Removes the file of this name in its destructor.
struct TempName {
  std::string path;
  ~TempName() { unlink(path.c_str()); }
};

// Writes to a temporary file, which Finish renames.
class Hdf5BlobWriter final : public BlobWriter {
 public:
  Hdf5BlobWriter(const std::vector<std::string>& blobs, const std::string& path)
      : blobs_(blobs), path_(path), temp_{TempPathFor(path)}, file_(temp_.path, path) {}

  void Add(size_t blob, std::span<const int64_t> dims, std::span<const float> values) override {
    file_.Append(blobs_[blob], dims, values);
  }

  // Closes the file before it gets its name, so that a reader never sees an incomplete one.
  void Finish() override {
    file_.Close();
    PlaceWhole(temp_.path, path_);
  }

 private:
  std::vector<std::string> blobs_;
  std::string path_;
  TempName temp_;
  Hdf5Appender file_;
};

}  // namespace

std::unique_ptr<BlobWriter> MakeHdf5Writer(const std::vector<std::string>& blobs,
                                           const std::string& path, bool replace) {
  RequireHdf5Names(blobs);
  if (Exists(path) && !replace) {
    throw Error(ErrorCode::kCannotCreate, {path},
                "the file already exists; give another name, or --force to replace it");
  }
  return std::make_unique<Hdf5BlobWriter>(blobs, path);
}

}  // namespace trainer
