#pragma once
// Samplers decide the order in which records are read, epoch after epoch.

#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/input/position.h"

namespace trainer {

// One record as it is stored. It cannot be copied, because its views may point into itself.
struct Record {
  Record() = default;
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  // Set by the BatchSampler.
  uint64_t number = 0;      // counts the records of all ranks since training began
  int64_t batch_index = 0;  // row of the batch, counted over all virtual ranks
  Position position;        // of this record; only in runs that skip bad records

  // Set by the RecordSampler, for the decoders of the same source.
  std::string_view key;    // names the record in messages
  std::string_view value;  // its bytes; empty if the decoder reads them itself
  uint64_t index = 0;      // index of its entry in the list or database

  // Prefetches a small value into the cache, for the thread that decodes it after it has fetched a
  // few more records. For large ones the processor itself detects that they are read in order.
  void PrefetchValue() const {
    constexpr size_t kLine = 64, kMost = 4096;
    if (value.size() > kMost) return;
    for (size_t at = 0; at < value.size(); at += kLine) __builtin_prefetch(value.data() + at);
  }
  // Copies key and value, so that they stay valid until the sampler writes this record again.
  void Own();

 private:
  std::string owned_;
};

// An endless sequence of records that can start at any saved position. It does not know about
// ranks, batches or pixels. Reading moves forward; only Seek may move back. One thread at a time
// uses it, while decoders run concurrently, so data that decoders use must not change.
//
// Get and Skip throw kData, kIo, ..., naming the source and the record.
class RecordSampler {
 public:
  virtual ~RecordSampler() = default;

  // Names the database or list in messages.
  virtual const std::string& path() const = 0;

  // Returns the current record.
  virtual void Get(Record* record) = 0;
  // Whether key and value stay valid as long as the sampler; else until Skip or Seek.
  virtual bool stable() const { return false; }
  // Moves forward by `count` records. Returns how many epochs ended on the way.
  virtual uint64_t Skip(uint64_t count) = 0;

  // Records per epoch; 0 for a source without epochs. If the number is unknown, the sampler reads
  // all keys if `reads_keys` is set, and otherwise returns -1. Does not move.
  virtual int64_t CountRecords(bool /*reads_keys*/) { return 0; }

  // Hint: only every `count`-th record will be read.
  virtual void SetStride(uint64_t /*count*/) {}

  // Names the current record in snapshots.
  virtual std::string Key() const = 0;
  // Returns the position of the first record.
  virtual Position Start() const { return {}; }
  // Moves to a position of Start or Key. Throws kBadSnapshot, and stays, without such a record.
  virtual void Seek(const Position& position) = 0;
  // Names the current record in messages: "record '00000007' of data/train_lmdb".
  virtual std::string Describe();

 protected:
  // Throws the error of Seek.
  [[noreturn]] void FailSeek(const Position& position) const;
};

}  // namespace trainer
