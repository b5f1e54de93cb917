#include "trainer/datasets/cifar.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/datasets/mean.h"
#include "trainer/storage/database_writer.h"
#include "trainer/storage/datum.h"

namespace trainer {
namespace {

constexpr int kCifar10Side = 32, kChannels = 3;
constexpr size_t kPixels = size_t{kChannels} * kCifar10Side * kCifar10Side;
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr int kKeyDigits = 5;

// A record is its label among some bytes, and the red, green and blue plane of the pixels. Source:
// www.cs.toronto.edu/~kriz/cifar.html.
struct RecordForm {
  const char* name;
  size_t bytes_before = 1;  // the pixels
  size_t label_at = 0;
  int classes = 10;
  int pad = 0;  // width of the black border that is put around an image
};

// Returns the planes of `pixels`, each in a border of zeros.
std::string WithBorder(const unsigned char* pixels, int pad) {
  const size_t side = kCifar10Side, border = static_cast<size_t>(pad), wide = side + 2 * border;
  std::string planes(kChannels * wide * wide, '\0');
  for (size_t row = 0; row < kChannels * side; ++row) {
    const size_t at = (row / side * wide + border + row % side) * wide + border;
    std::copy_n(pixels + row * side, side, planes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return planes;
}

void AddBatch(const std::string& path, const RecordForm& form, DatabaseWriter& database) {
  const size_t record = form.bytes_before + kPixels;
  const std::string content = ReadFile(path, kMaxBytes);
  if (content.empty() || content.size() % record != 0) {
    throw Error(ErrorCode::kData, {path},
                Join("its ", content.size(), " bytes are not a multiple of the record size, ",
                     record, " bytes; is it a batch file of ", form.name, "'s binary version?"));
  }
  const int side = kCifar10Side + 2 * form.pad;
  caffe::Datum datum = EmptyDatum(kChannels, side, side);
  Progress progress(Join("Converting ", path), "records",
                    static_cast<int64_t>(content.size() / record));
  for (size_t at = 0; at < content.size(); at += record) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(content.data() + at);
    const int label = bytes[form.label_at];
    if (label >= form.classes) {
      throw Error(ErrorCode::kData, {path},
                  Join("record ", at / record, " has the label ", label, "; ", form.name,
                       "'s labels are 0 to ", form.classes - 1));
    }
    datum.set_label(label);
    datum.set_data(WithBorder(bytes + form.bytes_before, form.pad));
    database.Put(datum);
    progress.Add(1);
  }
}

// Training files after the first one are optional.
Cifar10Files Write(const std::vector<std::string>& train_files, const std::string& test_file,
                   const RecordForm& form, const std::string& folder, const std::string& set,
                   const std::string& backend) {
  for (const std::string& path : {train_files.front(), test_file}) {
    OpenForReading(path);  // before anything is made
  }
  const NewFolders folders(folder);
  const std::string suffix = DatabaseSuffix(backend);
  Cifar10Files made{JoinPath(folder, set + "_train" + suffix),
                    JoinPath(folder, set + "_test" + suffix), JoinPath(folder, "mean.binaryproto")};
  DatabaseWriter train(backend, made.train, kKeyDigits), test(backend, made.test, kKeyDigits);
  for (const std::string& path : train_files) AddBatch(path, form, train);
  AddBatch(test_file, form, test);
  train.Finish();
  test.Finish();
  WriteMean(made.train, made.mean);
  made.train_records = train.records();
  made.test_records = test.records();
  return made;
}

}  // namespace

Cifar10Files WriteCifar10(const std::string& batches, const std::string& folder,
                          const std::string& backend, int pad) {
  std::vector<std::string> files;
  for (int i = 1;; ++i) {
    std::string path = JoinPath(batches, Join("data_batch_", i, ".bin"));
    if (i > 1 && !Exists(path)) break;
    files.push_back(std::move(path));
  }
  return Write(files, JoinPath(batches, "test_batch.bin"), {.name = "CIFAR-10", .pad = pad}, folder,
               "cifar10", backend);
}

Cifar10Files WriteCifar100(const std::string& batches, const std::string& folder,
                           Cifar100Labels labels, const std::string& backend, int pad) {
  const bool fine = labels == Cifar100Labels::kFine;
  const RecordForm form{"CIFAR-100", 2, fine ? size_t{1} : size_t{0}, fine ? 100 : 20, pad};
  return Write({JoinPath(batches, "train.bin")}, JoinPath(batches, "test.bin"), form, folder,
               "cifar100", backend);
}

}  // namespace trainer
