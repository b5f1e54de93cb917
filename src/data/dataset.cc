#include "trainer/data/dataset.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

#include "datum.pb.h"
#include "trainer/base/atomic_file.h"
#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"
#include "trainer/data/cursor.h"
#include "trainer/data/datum.h"
#include "trainer/data/db_writer.h"
#include "trainer/data/digits.h"
#include "trainer/data/idx.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxRecords = 100000000;  // keys have eight digits

// A database that exists under its name only when it is whole.
class NewDatabase {
 public:
  NewDatabase(const std::string& backend, std::string path) : path_(std::move(path)) {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
    temp_ = TempPathFor(path_);
    if (Exists(path_)) {
      throw Error(ErrorCode::kCannotCreate, {path_},
                  "exists already and is not overwritten; remove it or choose another name");
    }
    writer_ = CreateDb(backend, temp_);
  }
  ~NewDatabase() {
    if (writer_ == nullptr) return;
    writer_.reset();
    std::error_code ignored;
    fs::remove_all(temp_, ignored);
  }
  NewDatabase(const NewDatabase&) = delete;
  NewDatabase& operator=(const NewDatabase&) = delete;

  void Put(const caffe::Datum& datum) {
    char key[16];
    std::snprintf(key, sizeof key, "%08lld", static_cast<long long>(records_++));
    datum.SerializeToString(&value_);
    writer_->Put(key, value_);
  }

  void Finish() {
    writer_->Commit();
    FileOps& ops = FileOps::Posix();
    if (ops.Rename(temp_, path_) != 0) ThrowFileError(FileUse::kOutput, "rename", path_, errno);
    writer_.reset();
    SyncFolder(FolderOf(path_));
  }

  int64_t records() const { return records_; }

 private:
  std::string path_, temp_;
  std::unique_ptr<DbWriter> writer_;  // null once the database is in place
  std::string value_;
  int64_t records_ = 0;
};

void CheckCount(const char* what, int64_t count) {
  if (count < 1 || count > kMaxRecords) {
    throw Error(ErrorCode::kUsage, Join("the number of ", what, " images is ", count,
                                        "; it must be 1 to ", kMaxRecords));
  }
}

void WriteDigitSet(const DigitsOptions& options, const std::string& path, uint32_t set,
                   int64_t count) {
  NewDatabase database(options.backend, path);
  caffe::Datum datum;
  datum.set_channels(1);
  datum.set_height(DigitImage::kSide);
  datum.set_width(DigitImage::kSide);
  for (int64_t i = 0; i < count; ++i) {
    const DigitImage image = DrawDigit(options.seed, set, static_cast<uint64_t>(i));
    datum.set_data(image.pixels.data(), image.pixels.size());
    datum.set_label(image.label);
    database.Put(datum);
  }
  database.Finish();
}

// "_lmdb" of "LMDB".
std::string Suffix(std::string backend) {
  std::transform(backend.begin(), backend.end(), backend.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return Join('_', backend);
}

void AddRecord(const Cursor& cursor, DatumParser& parser, DatabaseInfo& info) {
  ++info.records;
  info.bytes += cursor.Value().size();
  info.last_key = cursor.Key();
  try {
    const DatumView& datum = parser.Parse(cursor.path(), cursor.Key(), cursor.Value());
    ++info.shapes[Join(datum.ShapeText(), datum.bytes.empty() ? " floats" : " bytes")];
    datum.has_label ? ++info.labels[datum.label] : ++info.unlabelled;
  } catch (const Error& error) {
    if (info.bad++ == 0) info.first_error = error.what();
  }
}

}  // namespace

DigitsPaths WriteDigits(const DigitsOptions& options) {
  CheckCount("training", options.train);
  CheckCount("test", options.test);
  std::error_code failure;
  fs::create_directories(options.folder, failure);
  if (failure) {
    throw Error(ErrorCode::kCannotCreate, {options.folder},
                Join("cannot make the folder: ", failure.message()));
  }
  const std::string suffix = Suffix(options.backend);
  DigitsPaths paths{JoinPath(options.folder, "train" + suffix),
                    JoinPath(options.folder, "test" + suffix)};
  for (const std::string& path : {paths.train, paths.test}) {
    if (Exists(path)) {
      throw Error(ErrorCode::kCannotCreate, {path},
                  "exists already and is not overwritten; remove it or choose another folder");
    }
  }
  WriteDigitSet(options, paths.train, 0, options.train);
  WriteDigitSet(options, paths.test, 1, options.test);
  return paths;
}

int64_t WriteIdx(const std::string& images, const std::string& labels, const std::string& database,
                 const std::string& backend) {
  IdxReader reader(images, labels);
  CheckCount("given", reader.count());
  NewDatabase output(backend, database);
  caffe::Datum datum;
  datum.set_channels(1);
  datum.set_height(reader.rows());
  datum.set_width(reader.columns());
  std::vector<uint8_t> pixels;
  int label = 0;
  while (reader.Next(&pixels, &label)) {
    datum.set_data(pixels.data(), pixels.size());
    datum.set_label(label);
    output.Put(datum);
  }
  output.Finish();
  return output.records();
}

DatabaseInfo DescribeDatabase(const std::string& path) {
  DatabaseInfo info;
  info.backend = DetectBackend(path);
  if (info.backend.empty() && IsDirectory(path)) {
    throw Error(ErrorCode::kNoInput, {path},
                "the folder holds neither data.mdb (LMDB) nor CURRENT (LevelDB), so no database");
  }
  if (info.backend.empty()) info.backend = "LMDB";  // opening explains what is wrong with the path
  const auto cursor = OpenCursor(info.backend, path);
  DatumParser parser;
  info.first_key = cursor->Key();
  do {
    AddRecord(*cursor, parser, info);
  } while (!cursor->Next());
  return info;
}

void Print(const DatabaseInfo& info, std::ostream& out) {
  out << "backend: " << info.backend << "\nrecords: " << info.records << "\nbytes: " << info.bytes
      << "\nfirst key: " << EscapeControl(info.first_key)
      << "\nlast key: " << EscapeControl(info.last_key) << "\n";
  for (const auto& [shape, count] : info.shapes) out << "shape: " << shape << ", " << count << "\n";
  for (const auto& [label, count] : info.labels) out << "label: " << label << ", " << count << "\n";
  if (info.unlabelled > 0) out << "without label: " << info.unlabelled << "\n";
  out << "unusable: " << info.bad << "\n";
  if (info.bad > 0) out << "first error: " << info.first_error << "\n";
}

}  // namespace trainer
