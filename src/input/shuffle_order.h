#pragma once
// The order of a shuffled epoch, chosen so that the disk reads long runs of records.

#include <cstdint>
#include <vector>

#include "trainer/base/random/philox.h"

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

// Orders a window: entry i is the place in reading order, counted from the start of the window, of
// the record that comes i-th.
void OrderWindow(const ShuffleLayout& layout, const PhiloxKey& key, uint64_t epoch, uint64_t window,
                 std::vector<uint32_t>* order);

}  // namespace trainer
