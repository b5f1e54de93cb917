#include "trainer/dataset/dataset.h"

#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/data/cursor.h"
#include "trainer/dataset/digits.h"
#include "trainer/dataset/idx.h"
#include "trainer/dataset/new_database.h"

namespace trainer {
namespace {

constexpr int64_t kMaxRecords = 100000000;  // keys have eight digits

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
  Progress progress(Join("Writing ", path), "digits", count);
  for (int64_t i = 0; i < count; ++i) {
    const DigitImage image = DrawDigit(options.seed, set, static_cast<uint64_t>(i));
    datum.set_data(image.pixels.data(), image.pixels.size());
    datum.set_label(image.label);
    database.Put(datum);
    progress.Add(1);
  }
  database.Finish();
}

}  // namespace

DigitsPaths WriteDigits(const DigitsOptions& options) {
  CheckCount("training", options.train);
  CheckCount("test", options.test);
  const NewFolders folders(options.folder);
  const std::string suffix = DatabaseSuffix(options.backend);
  DigitsPaths paths{JoinPath(options.folder, "train" + suffix),
                    JoinPath(options.folder, "test" + suffix)};
  for (const std::string& path : {paths.train, paths.test}) {
    if (Exists(path)) {
      throw Error(
          ErrorCode::kCannotCreate, {path},
          "the folder already exists and is not overwritten; remove it or choose another folder");
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
  Progress progress(Join("Writing ", database), "images", reader.count());
  while (reader.Next(&pixels, &label)) {
    datum.set_data(pixels.data(), pixels.size());
    datum.set_label(label);
    output.Put(datum);
    progress.Add(1, pixels.size());
  }
  output.Finish();
  return output.records();
}

std::string BackendOf(const std::string& path) {
  const std::string backend = DetectBackend(path);
  if (!backend.empty()) return backend;
  if (IsDirectory(path)) {
    throw Error(
        ErrorCode::kNoInput, {path},
        "the folder is not a database: it has neither data.mdb (LMDB) nor CURRENT (LevelDB)");
  }
  return "LMDB";  // opening explains what is wrong with the path
}

}  // namespace trainer
