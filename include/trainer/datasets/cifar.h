#pragma once
// CIFAR-10 and CIFAR-100, from their binary versions.

#include <cstdint>
#include <string>

namespace trainer {

// The result of WriteCifar10: folder/cifar10_train_lmdb, cifar10_test_lmdb (or ..._leveldb) with
// keys %05d, as Caffe's converter writes; and folder/mean.binaryproto of the training images.
struct Cifar10Files {
  std::string train, test, mean;
  int64_t train_records = 0, test_records = 0;
};

// Reads the folder `batches`: data_batch_1.bin, data_batch_2.bin, ... until one is missing, for
// training, and test_batch.bin. Each record is 3x32x32 (red, green, blue) with a label 0 to 9, in a
// black border of `pad` pixels. Errors: as DatabaseWriter throws; kNoInput, kData for a file with
// other content.
Cifar10Files WriteCifar10(const std::string& batches, const std::string& folder,
                          const std::string& backend = "LMDB", int pad = 0);

enum class Cifar100Labels { kFine, kCoarse };  // 100 classes, 20 groups of classes

// Reads CIFAR-100's train.bin and test.bin in the same way, and writes cifar100_train_lmdb, ...
Cifar10Files WriteCifar100(const std::string& batches, const std::string& folder,
                           Cifar100Labels labels = Cifar100Labels::kFine,
                           const std::string& backend = "LMDB", int pad = 0);

}  // namespace trainer
