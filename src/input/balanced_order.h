#pragma once
// The order of records for `sampling: BALANCED`.

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/base/random/philox.h"

namespace trainer {

// An order in which every class comes equally often: in each epoch, a class has as many places as
// the largest class has records. Its records fill them equally often, and the places that remain
// are for records that the epoch draws without repetition. The places of all classes are then
// permuted. The record at a place is a function of the key, the epoch and the place, and is
// computed without the others: an epoch needs no memory, and any place can be found again.
class BalancedOrder {
 public:
  // `labels`: of the records, by index; not empty, fewer than 2^32. Each different label is a
  // class.
  BalancedOrder(std::span<const int32_t> labels, const PhiloxKey& key);

  uint64_t records() const { return records_.size(); }
  uint64_t classes() const { return first_.size() - 1; }
  uint64_t smallest() const { return smallest_; }  // records of the smallest class
  uint64_t largest() const { return largest_; }
  // Returns the number of places of an epoch.
  uint64_t size() const { return classes() * largest_; }
  // Returns the index of the record at a place below size().
  uint32_t RecordAt(uint64_t epoch, uint64_t place) const;

 private:
  PhiloxKey key_;
  std::vector<uint32_t> records_;  // indices, class after class
  std::vector<uint64_t> first_;    // of each class in records_; then the end of records_
  uint64_t smallest_ = 0, largest_ = 0;
};

}  // namespace trainer
