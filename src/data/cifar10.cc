#include <array>
#include <string>
#include <vector>

#include "new_database.h"
#include "trainer/base/atomic_file.h"
#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"
#include "trainer/data/dataset.h"

namespace trainer {
namespace {

constexpr int kSide = 32, kChannels = 3, kClasses = 10;
constexpr size_t kPixels = size_t{kChannels} * kSide * kSide, kRecord = 1 + kPixels;
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr int kKeyDigits = 5;

using Sums = std::array<uint64_t, kPixels>;  // of every pixel over all images

// A batch file: records of a label byte and the pixels, red, green and blue plane.
// Source: www.cs.toronto.edu/~kriz/cifar.html.
void AddBatch(const std::string& path, NewDatabase& database, Sums* sums) {
  const std::string content = ReadFile(path, kMaxBytes);
  if (content.empty() || content.size() % kRecord != 0) {
    throw Error(ErrorCode::kData, {path},
                Join("its ", content.size(), " bytes are no whole number of records of ", kRecord,
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
    if (sums == nullptr) continue;
    for (size_t i = 0; i < kPixels; ++i) (*sums)[i] += bytes[1 + i];
  }
}

// As Caffe's mean files: one image of four axes in the old form.
void WriteMean(const Sums& sums, int64_t images, const std::string& path) {
  caffe::BlobProto mean;
  mean.set_num(1);
  mean.set_channels(kChannels);
  mean.set_height(kSide);
  mean.set_width(kSide);
  for (const uint64_t sum : sums) {
    mean.add_data(static_cast<float>(static_cast<double>(sum) / static_cast<double>(images)));
  }
  const std::string bytes = mean.SerializeAsString();
  AtomicFile file(path);
  file.Append(bytes.data(), bytes.size());
  file.Commit();
}

}  // namespace

Cifar10Files WriteCifar10(const std::string& batches, const std::string& folder,
                          const std::string& backend) {
  MakeFolders(folder);
  const std::string suffix = DatabaseSuffix(backend);
  Cifar10Files made{JoinPath(folder, "cifar10_train" + suffix),
                    JoinPath(folder, "cifar10_test" + suffix),
                    JoinPath(folder, "mean.binaryproto")};
  NewDatabase train(backend, made.train, kKeyDigits), test(backend, made.test, kKeyDigits);
  Sums sums{};
  for (int i = 1;; ++i) {
    const std::string path = JoinPath(batches, Join("data_batch_", i, ".bin"));
    if (i > 1 && !Exists(path)) break;
    AddBatch(path, train, &sums);
  }
  AddBatch(JoinPath(batches, "test_batch.bin"), test, nullptr);
  train.Finish();
  test.Finish();
  WriteMean(sums, train.records(), made.mean);
  made.train_records = train.records();
  made.test_records = test.records();
  return made;
}

}  // namespace trainer
