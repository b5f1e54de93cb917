#pragma once
// The records of a database in another order each epoch, read by extents.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/random/philox.h"
#include "trainer/input/record_sampler.h"
#include "trainer/storage/checksums.h"

namespace trainer {

// Records are numbered in stored order. Runs of `extent` records come in a new order each epoch,
// each read from its start to its end; of the records read in that way, `window` at a time are
// permuted. The order is a function of the key and the epoch.
struct ShuffleLayout {
  uint64_t records = 0, extent = 1, window = 1;
  bool operator==(const ShuffleLayout&) const = default;
};

// Chooses, for records of this mean size, extents that are long enough to be worth a disk seek, and
// a window of `window` records (0: as many as fit into memory).
ShuffleLayout ChooseLayout(uint64_t records, double mean_bytes, uint64_t window);

// The order of the extents in one epoch. Places count from 0 in the order of reading.
class ExtentOrder {
 public:
  ExtentOrder(const ShuffleLayout& layout, const PhiloxKey& key, uint64_t epoch);

  uint64_t epoch() const { return epoch_; }
  // The record that the epoch reads at this place.
  uint64_t RecordAt(uint64_t place) const;

 private:
  ShuffleLayout layout_;
  uint64_t epoch_;
  std::vector<uint32_t> extents_;
  uint64_t short_at_ = 0;  // where the last extent is, which may be a shorter one
};

// Orders a window: entry i is the place, in reading order, of the record that comes i-th.
void OrderWindow(const ShuffleLayout& layout, const PhiloxKey& key, uint64_t epoch, uint64_t window,
                 std::vector<uint32_t>* order);

// The records of the current window are in memory; those of the next one are read meanwhile, evenly
// and in order within extents. Other records are read one by one.
class ShuffledSampler final : public RecordSampler {
 public:
  // `window`: as in ChooseLayout. Decoders use `checksums`, which may be null. Reads all keys once,
  // unless one window holds all records.
  ShuffledSampler(std::unique_ptr<Cursor> cursor, uint64_t window, const PhiloxKey& key,
                  std::unique_ptr<const ChecksumVerifier> checksums);

  const ShuffleLayout& layout() const { return layout_; }
  const std::string& path() const override { return cursor_->path(); }
  void Get(Record* record) override;
  bool stable() const override { return cursor_->stable(); }
  uint64_t Skip(uint64_t count) override;
  int64_t CountRecords(bool) override { return static_cast<int64_t>(layout_.records); }
  // The records whose number, counted over epochs, is equal modulo `count` are kept.
  void SetStride(uint64_t count) override { stride_ = count; }
  std::string Key() const override;
  std::string Describe() override;
  void Seek(const Position& position) override;

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

  void SetLayout(const ShuffleLayout& layout);
  void FindExtents();
  void Begin(uint64_t epoch, uint64_t number, uint64_t residue, Window* window);
  void ReadUpTo(uint64_t places, Window* window);
  void ReadAhead(uint64_t place);
  uint64_t BytesOf(uint64_t extent) const;
  void Announce(const ExtentOrder& order, uint64_t place);
  void GoTo(uint64_t record);
  bool FindKept(Record* record);
  void GetAlone(Record* record);
  const ExtentOrder& OrderOf(uint64_t epoch);
  uint64_t FirstOf(uint64_t window) const { return window * layout_.window; }

  std::unique_ptr<Cursor> cursor_;
  PhiloxKey key_;
  std::unique_ptr<const ChecksumVerifier> checksums_;
  ShuffleLayout layout_;
  uint64_t epoch_ = 0, place_ = 0;
  bool epoch_ended_ = false;                    // since the last Get
  uint64_t stride_ = 0;                         // 0: nobody reads on yet
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
