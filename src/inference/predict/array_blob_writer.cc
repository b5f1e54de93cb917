#include "predict/array_blob_writer.h"

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/array_file.h"
#include "trainer/storage/array_writer.h"

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

// Writes each blob to the array of its name.
class ArrayBlobWriter final : public BlobWriter {
 public:
  ArrayBlobWriter(const std::vector<std::string>& blobs, const std::string& path)
      : blobs_(blobs), file_(OpenArrayWriter(path)) {}

  void Add(size_t blob, std::span<const int64_t> dims, std::span<const float> values) override {
    file_->Append(blobs_[blob], dims, values);
  }
  void Finish() override { file_->Finish(); }

 private:
  std::vector<std::string> blobs_;
  std::unique_ptr<ArrayWriter> file_;
};

}  // namespace

std::unique_ptr<BlobWriter> MakeArrayBlobWriter(const std::vector<std::string>& blobs,
                                                const std::string& path, bool replace) {
  if (!IsNumpyPath(path)) RequireHdf5Names(blobs);
  RefuseToReplace(path, replace);
  return std::make_unique<ArrayBlobWriter>(blobs, path);
}

}  // namespace trainer
