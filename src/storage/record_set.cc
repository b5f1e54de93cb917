#include "trainer/storage/record_set.h"

#include "record_kinds.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/new_database.h"
#include "trainer/storage/tar_shards.h"

namespace trainer {
namespace {

class CursorReader final : public RecordReader {
 public:
  CursorReader(const std::string& backend, const std::string& path)
      : cursor_(OpenCursor(backend, path)) {}

  bool Next(StoredRecord* record) override {
    if (started_ && cursor_->Next()) return false;
    started_ = true;
    record->key = cursor_->Key();
    record->value = cursor_->Value();
    return true;
  }
  int64_t Count() const override { return std::max<int64_t>(cursor_->Count(), 0); }

 private:
  std::unique_ptr<Cursor> cursor_;
  bool started_ = false;
};

class DatabaseWriter final : public RecordWriter {
 public:
  explicit DatabaseWriter(const WriteOptions& output) : database_(output.backend, output.path) {}

  void Put(const StoredRecord& record) override { database_.Put(record.key, record.value); }
  void Finish() override { database_.Finish(); }

 private:
  NewDatabase database_;
};

bool IsHdf5Name(const std::string& path) {
  return path.ends_with(".h5") || path.ends_with(".hdf5");
}

}  // namespace

std::string KindOfSet(const std::string& path) {
  if (IsDirectory(path)) return BackendOf(path);
  if (IsHdf5Name(path)) return "HDF5";
  if (HoldsTarShards(path)) return "TAR";
  return path.ends_with(".txt") ? "HDF5" : "LMDB";
}

std::unique_ptr<RecordReader> OpenRecords(const std::string& path) {
  const std::string kind = KindOfSet(path);
  if (kind == "HDF5") return OpenHdf5Records(path);
  return std::make_unique<CursorReader>(kind, path);
}

std::unique_ptr<RecordWriter> OpenRecordWriter(const WriteOptions& output) {
  RemoveStrayTemps(output.path);  // of a run that was killed
  if (IsHdf5Name(output.path)) return MakeHdf5Records(output.path);
  if (output.path.ends_with(".tar")) return MakeTarRecords(output.path, output.shard_bytes);
  return std::make_unique<DatabaseWriter>(output);
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
