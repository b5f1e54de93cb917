#pragma once
// From an item of a batch back to the record that it was.

#include <cstdint>
#include <string>

#include "trainer/base/error/error.h"

namespace trainer {

// What a layer also is when its batches are made of records.
class NamesItems {
 public:
  virtual ~NamesItems() = default;
  // Item `item` of the last batch, or of one `batches_ago` of them, at most kAgo, before it:
  // "record '00000007' of data/train_lmdb", or "". The layer gives no further batch: for the
  // message with which a run ends.
  static constexpr uint32_t kAgo = 1;
  virtual std::string NameOfItem(int64_t item, uint32_t batches_ago) = 0;
};

// An Error for which one item of a layer's input is to blame. The net adds the item's name.
class RecordError : public Error {
 public:
  RecordError(const Error& error, int input, int64_t item)
      : Error(error), input_(input), item_(item) {}

  int input() const { return input_; }
  int64_t item() const { return item_; }

 private:
  int input_;
  int64_t item_;
};

}  // namespace trainer
