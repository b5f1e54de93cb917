#pragma once
// The order of a shuffled epoch that needs no random reads.

#include <cstdint>
#include <vector>

#include "trainer/base/random/philox.h"

namespace trainer {

// Records are numbered as they are stored. Runs of `extent` of them come in a new order each epoch,
// each read from its start to its end; of what is read so, `window` records at a time are put in
// any order. A function of the key and the epoch.
struct ShuffleForm {
  uint64_t records = 0, extent = 1, window = 1;
  bool operator==(const ShuffleForm&) const = default;
};

// Of records with so many bytes each, the extents that are worth a jump on any disk, and a window
// of `window` records (0: as many as may be held in memory).
ShuffleForm ChooseShuffle(uint64_t records, double mean_bytes, uint64_t window);

// One epoch's order: in which order extents are read. Places count from 0 in the order of reading.
class ExtentOrder {
 public:
  ExtentOrder(const ShuffleForm& form, const PhiloxKey& key, uint64_t epoch);

  uint64_t epoch() const { return epoch_; }
  // The record at a place of the order in which the epoch reads.
  uint64_t RecordAt(uint64_t place) const;

 private:
  ShuffleForm form_;
  uint64_t epoch_;
  std::vector<uint32_t> extents_;
  uint64_t short_at_ = 0;  // where the last extent is, which may be a shorter one
};

// A window's order: entry i is the place in reading order, from the window's first, of the record
// that comes i-th.
void OrderWindow(const ShuffleForm& form, const PhiloxKey& key, uint64_t epoch, uint64_t window,
                 std::vector<uint32_t>* order);

}  // namespace trainer
