#pragma once
// Where batches come from. A source gives records as they are stored, one after the other; its
// decoders, one for each decoding thread, make numbers of them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/batch.h"
#include "trainer/input/position.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// One record as its source stores it. It is not copied, as its views may point into itself.
struct Record {
  Record() = default;
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  uint64_t number = 0;  // counted since training began, the records of all replicas included
  int64_t slot = 0;     // index in its batch, through all parts of it (see BatchQueue::Next)
  Position place;       // where it is, in a run that skips bad records

  // Written by the source for its own decoders.
  std::string_view key;    // names the record in messages
  std::string_view value;  // its bytes, where the source reads them
  uint64_t index = 0;      // where the source needs no bytes: the entry of a list, ...

  // Copies key and value, so that they stay valid until the source writes this record again.
  void Keep();

 private:
  std::string kept_;
};

// Decodes and transforms. Used by one thread; the decoders of one source run at the same time. What
// a record becomes depends on the record, its number and its slot alone.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Fills the records' slots of the batch, in the order of the records. Throws at the first bad
  // one: kData, kNoInput, kIo, ..., naming the source and the record.
  virtual void Decode(std::span<const Record> records, Batch* batch) = 0;
  // The share of the time so far, 0 to 1, that went into making numbers of decoded records.
  virtual double transform_fraction() const { return 0; }
};

// An endless row of records, epoch after epoch. Reading goes forward; only Seek may go back. Used
// by one thread at a time, beside its decoders: what those read of it must not change.
//
// Errors: of Fetch and Advance, kData, kIo, ..., naming the source and the record.
class RecordSource {
 public:
  virtual ~RecordSource() = default;

  // The database or list, for messages.
  virtual const std::string& path() const = 0;

  // The current record; `number` and `slot` are the caller's.
  virtual void Fetch(Record* record) = 0;
  // Whether key and value stay valid as long as the source; else until Advance or Seek.
  virtual bool stable() const { return false; }
  // Goes on by `count` records. Returns how many epochs ended on the way.
  virtual uint64_t Advance(uint64_t count) = 0;

  // The records of an epoch; 0 where the source has no epochs. Where the number is not known, the
  // source reads all keys if `reads_keys` is set, and otherwise returns -1. Stays where it is.
  virtual int64_t CountRecords(bool reads_keys) {
    static_cast<void>(reads_keys);
    return 0;
  }

  // As Cursor::SetStride.
  virtual void SetStride(uint64_t count) { static_cast<void>(count); }

  // Of a snapshot: the current record, by which a later run finds it.
  virtual std::string Key() const = 0;
  // The position before anything is read.
  virtual Position First() const { return {}; }
  // Goes to a position whose key is that of First or Key. Without such a record it throws
  // kBadSnapshot and stays.
  virtual void Seek(const Position& position) = 0;
  // The current record, for messages: "record '00000007' of data/train_lmdb".
  virtual std::string Name() const;

  // Of the outputs of a batch; looks at the current record where it must. `labels`: whether images
  // have a second output. Called once, before MakeDecoder.
  virtual std::vector<Shape> Shapes(int64_t batch_size, bool labels) = 0;
  // Asked after Shapes: what makes numbers of bytes, where the decoders fill batches of bytes, too.
  virtual const Normalization* normalization() const { return nullptr; }
  virtual std::unique_ptr<Decoder> MakeDecoder() const = 0;
  // The time that a processor took to decode the first record, as Shapes did; 0: unknown.
  virtual double DecodeSeconds() const { return 0; }
  // Whether Complete has something to do, when all records of a batch are decoded. Any thread.
  virtual bool Completes() const { return false; }
  virtual void Complete(Batch* batch) const { static_cast<void>(batch); }

 protected:
  // For Seek.
  [[noreturn]] void FailSeek(const Position& position) const;
};

}  // namespace trainer
