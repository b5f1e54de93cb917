#pragma once
// An index of the samples in tar files, by WebDataset's names: consecutive files that share their
// name up to the first dot are one sample, "a/0001.jpg" its image and "a/0001.cls" its label;
// without it, "a/0001.json" or "a/0001.npy" has its label or labels (see tar_labels.h).

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/file/random_access_file.h"

namespace trainer {

class TarIndex {
 public:
  // 32 bytes: there may be many millions.
  struct Sample {
    uint64_t at = 0;  // of the image in its file
    uint64_t key_at = 0;
    uint32_t bytes = 0;  // of the image
    int32_t label = 0;   // with has_labels the index of its row in TarIndex's labels
    uint32_t shard = 0;
    uint32_t key_bytes : 30 = 0;
    uint32_t has_label : 1 = 0;   // one integer
    uint32_t has_labels : 1 = 0;  // several, or one that is not an integer
  };

  // The limit for all files together. An index of that size takes some gigabytes of memory.
  static constexpr uint64_t kMostEntries = 100'000'000;

  // Reads the headers and labels of all files once. Throws as TarReader does; kData for a label
  // without an image, a label that is not a number, samples with different numbers of labels, two
  // images of a sample, no samples, and more entries than `most`.
  TarIndex(const std::string& source, std::vector<std::string> files, uint64_t most = kMostEntries,
           FileOps& ops = FileOps::Posix());

  const std::vector<std::string>& files() const { return files_; }
  size_t count() const { return samples_.size(); }
  const Sample& operator[](size_t i) const { return samples_[i]; }
  uint64_t bytes() const { return bytes_; }  // of all images
  // Returns the labels of a sample that has several, or one that is not an integer; else nothing.
  std::span<const float> LabelsOf(const Sample& sample) const;

  // The name of a sample, which no other one has: "train-0003.tar/a/0001".
  std::string KeyOf(size_t i) const;
  // The sample of that name, or count().
  size_t Find(std::string_view key) const;

 private:
  struct Pending;

  void ReadShard(uint32_t shard, FileOps& ops);
  // Adds a complete sample, unless it has no image. `fail` throws with the name of the file.
  void Add(const Pending& pending, uint32_t shard,
           const std::function<void(const std::string&)>& fail);
  void AddLabels(const Pending& pending, const std::function<void(const std::string&)>& fail,
                 Sample* sample);
  std::string_view NameOf(const Sample& sample) const {
    return std::string_view(names_).substr(sample.key_at, sample.key_bytes);
  }

  std::vector<std::string> files_, shard_keys_;
  std::vector<size_t> first_of_shard_;
  std::vector<Sample> samples_;
  std::vector<float> labels_;  // of the samples with has_labels, label_count_ for each
  size_t label_count_ = 0;     // labels per sample; 0: no sample has a label yet
  std::string names_;
  uint64_t bytes_ = 0;
  uint64_t entries_left_;
};

}  // namespace trainer
