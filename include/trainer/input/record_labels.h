#pragma once
// The labels of all records of a database, read in one pass before training.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/storage/cursor.h"

namespace trainer {

// The keys of all records of a database in one string, 8 bytes and its own length for each.
class RecordKeys {
 public:
  void Add(std::string_view key) {
    text_.append(key);
    ends_.push_back(text_.size());
  }
  std::string_view operator[](size_t record) const {
    const size_t begin = record == 0 ? 0 : ends_[record - 1];
    return std::string_view(text_).substr(begin, ends_[record] - begin);
  }

 private:
  std::string text_;
  std::vector<size_t> ends_;  // of each key in text_
};

// Returns the labels of the records in stored order, and adds their keys to `keys` unless it is
// null. Reads no more of each record than its label, and moves the cursor to the first record.
// Throws kData for a record without a label and for one that is not a Datum, naming it.
std::vector<int32_t> ReadLabels(Cursor& cursor, RecordKeys* keys = nullptr);

}  // namespace trainer
