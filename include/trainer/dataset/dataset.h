#pragma once
// What `trainer dataset` makes of files of known sets, and the mean of a database.

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

struct DigitsOptions {
  std::string folder;  // made if it is not there
  std::string backend = "LMDB";
  int64_t train = 20000, test = 4000;  // records, each 1x28x28
  uint64_t seed = 1;
};

struct DigitsPaths {
  std::string train, test;  // folder/train_lmdb, folder/test_lmdb; or ..._leveldb
};

// All functions that write do so under a hidden name that is renamed at the end, so that a failure
// leaves no database. Keys are %08d in order. Errors: those of CreateDb and DbWriter; kUsage
// for a count below 1 or above 10^8, where the keys would no longer be in order.
DigitsPaths WriteDigits(const DigitsOptions& options);

// The records of a pair of MNIST's files, in file order. Returns their number. Errors also: those
// of IdxReader.
int64_t WriteIdx(const std::string& images, const std::string& labels, const std::string& database,
                 const std::string& backend = "LMDB");

// What WriteCifar10 makes: folder/cifar10_train_lmdb, cifar10_test_lmdb (or ..._leveldb) with keys
// %05d, as Caffe's converter; and folder/mean.binaryproto of the training images.
struct Cifar10Files {
  std::string train, test, mean;
  int64_t train_records = 0, test_records = 0;
};

// CIFAR-10's binary version, each record 3x32x32 (red, green, blue) and a label 0 to 9: of the
// folder `batches` the files data_batch_1.bin, data_batch_2.bin, ... as far as they go, for
// training, and test_batch.bin. Errors also: kNoInput, kData for a file that holds anything else.
Cifar10Files WriteCifar10(const std::string& batches, const std::string& folder,
                          const std::string& backend = "LMDB");

enum class Cifar100Labels { kFine, kCoarse };  // 100 classes, 20 groups of classes

// The same of CIFAR-100's train.bin and test.bin: cifar100_train_lmdb, ...
Cifar10Files WriteCifar100(const std::string& batches, const std::string& folder,
                           Cifar100Labels labels = Cifar100Labels::kFine,
                           const std::string& backend = "LMDB");

// As many pairs as `set` has images, each of two images drawn at random: twice the channels, label
// 1 when the two labels are the same, else 0. A function of the set and the seed. Keeps all images
// in memory. Returns the number. Errors also: those of OpenRecords and DatumParser; kData
// for a record of floats, of another shape than the first, or without a label.
int64_t WritePairs(const std::string& set, const std::string& pairs,
                   const std::string& backend = "LMDB", uint64_t seed = 1);

// The kind of database in the folder. Throws kNoInput when it is a folder without one; LMDB for a
// path that is no folder.
std::string BackendOf(const std::string& path);

struct MeanResult {
  int64_t records = 0;
  std::string shape;          // "3x256x256"
  std::vector<float> values;  // of each channel
};

// Writes the mean of all records of a set to a binaryproto file, as compute_image_mean does (num 1,
// channels, height, width). Sums are doubles. Errors: those of OpenRecords, DatumParser,
// AtomicFile; kData for records of different shapes.
MeanResult WriteMean(const std::string& set, const std::string& output);

}  // namespace trainer
