#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/storage/cursor.h"

namespace trainer {

// A cursor of a set whose records are numbered. A value is read when it is asked for.
class IndexedCursor : public Cursor {
 public:
  using Cursor::Cursor;

  std::string_view Key() const override { return key_; }
  std::string_view Value() const override {
    if (!has_value_) ReadValue(at_, &value_);
    has_value_ = true;
    return value_;
  }

  void SeekFirst() override { GoTo(0); }
  void SeekLast() override { GoTo(Count() - 1); }
  bool Next() override {
    const bool wraps = at_ + 1 == Count();
    GoTo(wraps ? 0 : at_ + 1);
    return wraps;
  }
  bool Seek(std::string_view key) override {
    const int64_t at = Find(key);
    if (at >= 0) GoTo(at);
    return at >= 0;
  }
  bool SeekAtLeast(std::string_view key) override {
    int64_t at = 0;
    while (at < Count() && KeyOf(at) < key) ++at;
    if (at < Count()) GoTo(at);
    return at < Count();
  }

 protected:
  int64_t at() const { return at_; }  // the number of the current record

 private:
  virtual std::string KeyOf(int64_t record) const = 0;
  // Returns the number of the record with this key, or -1.
  virtual int64_t Find(std::string_view key) const = 0;
  virtual void ReadValue(int64_t record, std::string* value) const = 0;

  void GoTo(int64_t record) {
    at_ = record;
    key_ = KeyOf(record);
    has_value_ = false;
  }

  int64_t at_ = 0;
  std::string key_;
  mutable bool has_value_ = false;
  mutable std::string value_;
};

}  // namespace trainer
