#include <string>

#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"
#include "trainer/dataset/dataset.h"
#include "trainer/dataset/new_database.h"

namespace trainer {
namespace {

constexpr int kSide = 32, kChannels = 3, kClasses = 10;
constexpr size_t kPixels = size_t{kChannels} * kSide * kSide, kRecord = 1 + kPixels;
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr int kKeyDigits = 5;

// A batch file: records of a label byte and the pixels, red, green and blue plane.
// Source: www.cs.toronto.edu/~kriz/cifar.html.
void AddBatch(const std::string& path, NewDatabase& database) {
  const std::string content = ReadFile(path, kMaxBytes);
  if (content.empty() || content.size() % kRecord != 0) {
    throw Error(
        ErrorCode::kData, {path},
        Join("its ", content.size(), " bytes are not a multiple of the record size, ", kRecord,
             " bytes; is it a batch file of CIFAR-10's binary version, and complete?"));
  }
  caffe::Datum datum;
  datum.set_channels(kChannels);
  datum.set_height(kSide);
  datum.set_width(kSide);
  for (size_t at = 0; at < content.size(); at += kRecord) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(content.data() + at);
    if (bytes[0] >= kClasses) {
      throw Error(ErrorCode::kData, {path},
                  Join("record ", at / kRecord, " has the label ", int{bytes[0]},
                       "; CIFAR-10's labels are 0 to 9"));
    }
    datum.set_label(bytes[0]);
    datum.set_data(bytes + 1, kPixels);
    database.Put(datum);
  }
}

}  // namespace

Cifar10Files WriteCifar10(const std::string& batches, const std::string& folder,
                          const std::string& backend) {
  for (const char* name : {"data_batch_1.bin", "test_batch.bin"}) {
    OpenForReading(JoinPath(batches, name));  // before anything is made
  }
  const NewFolders folders(folder);
  const std::string suffix = DatabaseSuffix(backend);
  Cifar10Files made{JoinPath(folder, "cifar10_train" + suffix),
                    JoinPath(folder, "cifar10_test" + suffix),
                    JoinPath(folder, "mean.binaryproto")};
  NewDatabase train(backend, made.train, kKeyDigits), test(backend, made.test, kKeyDigits);
  for (int i = 1;; ++i) {
    const std::string path = JoinPath(batches, Join("data_batch_", i, ".bin"));
    if (i > 1 && !Exists(path)) break;
    AddBatch(path, train);
  }
  AddBatch(JoinPath(batches, "test_batch.bin"), test);
  train.Finish();
  test.Finish();
  WriteMean(made.train, made.mean);
  made.train_records = train.records();
  made.test_records = test.records();
  return made;
}

}  // namespace trainer
