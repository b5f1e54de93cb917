#pragma once
// A database's records in a shuffled order, read by extents.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shuffle_order.h"
#include "trainer/storage/cursor.h"

namespace trainer {

// Returns the record at any place of any epoch. The records of the current window are in memory,
// and those of the next window are read meanwhile, so that the database is read evenly and in order
// within extents. Other records are read one by one. Used by one thread at a time.
class ShuffledReader {
 public:
  // `window`: as in ChooseLayout. Reads all keys once, unless one window holds all records.
  ShuffledReader(std::unique_ptr<Cursor> cursor, uint64_t window, const PhiloxKey& key);

  const std::string& path() const { return cursor_->path(); }
  const ShuffleLayout& layout() const { return layout_; }
  // Continues the order of a snapshot. The number of records must be the same.
  void SetLayout(const ShuffleLayout& layout);

  // From here on only the records whose number, counted over epochs, is equal modulo `count` are
  // wanted; the others are not kept.
  void SetStride(uint64_t count) { every_ = count; }

  struct Record {
    std::string_view key, value;  // until the next call, or as long as the reader
    uint64_t number = 0;          // in the order of the database
  };
  Record Get(uint64_t epoch, uint64_t place);
  bool stable() const { return cursor_->stable(); }
  void CheckUnchanged() const { cursor_->CheckUnchanged(); }

 private:
  struct Kept {
    std::string key, value;
    std::string_view key_view, value_view;
    uint64_t number = 0;
    bool is_there = false;
  };
  // A window: consecutive places of an epoch.
  struct Window {
    bool is_set = false;
    uint64_t epoch = 0, number = 0;
    uint64_t residue = 0;          // of the wanted records
    std::vector<uint32_t> coming;  // by place in reading order: the place in shuffled order
    std::vector<Kept> kept;        // by place in shuffled order
    uint64_t read = 0;             // places in reading order that were passed
    uint64_t begun_at = 0;         // the place from which on it is given out

    uint64_t size() const { return coming.size(); }
    bool Is(uint64_t e, uint64_t n) const { return is_set && epoch == e && number == n; }
  };

  void FindExtents();
  void Begin(uint64_t epoch, uint64_t number, uint64_t residue, Window* window);
  void ReadUpTo(uint64_t places, Window* window);
  void ReadAhead(uint64_t place);
  uint64_t BytesOf(uint64_t extent) const;
  void Announce(const ExtentOrder& order, uint64_t place);
  void GoTo(uint64_t record);
  Record GetAlone(uint64_t epoch, uint64_t number, uint64_t in_window);
  const ExtentOrder& OrderOf(uint64_t epoch);
  uint64_t FirstOf(uint64_t window) const { return window * layout_.window; }

  std::unique_ptr<Cursor> cursor_;
  PhiloxKey key_;
  ShuffleLayout layout_;
  uint64_t every_ = 0;                          // 0: nobody reads on yet
  std::vector<std::string> first_keys_;         // of the extents
  std::vector<std::string_view> first_values_;  // the same, where they stay valid
  double mean_bytes_ = 0;                       // of a record
  std::optional<uint64_t> read_extent_;
  std::vector<uint64_t> announced_;       // extents: that one and those that come next
  uint64_t at_ = 0;                       // the cursor's record
  std::optional<ExtentOrder> orders_[2];  // of an epoch and the next one
  Window now_, next_;
};

}  // namespace trainer
