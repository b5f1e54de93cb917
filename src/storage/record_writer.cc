
#include "hdf5_set.h"
#include "tar/tar.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/array_file.h"
#include "trainer/storage/database_writer.h"
#include "trainer/storage/format.h"

namespace trainer {

std::unique_ptr<RecordWriter> OpenRecordWriter(const WriteOptions& output) {
  RemoveStrayTemps(output.path);  // of a run that was killed
  if (IsHdf5Name(output.path) || output.path.ends_with(".npz")) {
    return CreateHdf5Set(output.path, output.are_rows);
  }
  if (IsNumpyPath(output.path)) {
    throw Error(ErrorCode::kUsage, Join(output.path,
                                        ": an .npy file holds one array, but a set has data and "
                                        "labels; write an .npz file"));
  }
  if (output.path.ends_with(".tar")) return CreateTarSet(output.path, output.shard_bytes);
  return std::make_unique<DatabaseWriter>(output.backend, output.path);
}

void RefuseExisting(const std::string& path) {
  if (!Exists(path)) return;
  throw Error(ErrorCode::kCannotCreate, {path},
              "it already exists and is not overwritten; remove it or choose another name");
}

std::string NumberedKey(int64_t number) {
  constexpr size_t kDigits = 8;
  const std::string digits = std::to_string(number);
  if (digits.size() > kDigits) {
    throw Error(ErrorCode::kUsage, Join("record ", number, ": keys with ", kDigits,
                                        " digits cannot number more records"));
  }
  return std::string(kDigits - digits.size(), '0') + digits;
}

}  // namespace trainer
