#pragma once
// The records of a set with `sampling: BALANCED`.

#include <cstdint>
#include <string>

#include "balanced_order.h"
#include "trainer/input/record_sampler.h"

namespace trainer {

// Walks through the epochs of a BalancedOrder. A derived class reads the record with an index. A
// position names the epoch and the place, so it fits every rank and any number of ranks.
class BalancedSampler : public RecordSampler {
 public:
  // `skip`: places of the first epoch that are skipped. Logs what an epoch has; `path` names the
  // set.
  BalancedSampler(BalancedOrder order, uint64_t skip, const std::string& path);

  uint64_t Skip(uint64_t count) final;
  int64_t CountRecords(bool) final { return static_cast<int64_t>(order_.size()); }
  std::string Key() const final;
  void Seek(const Position& position) final;
  // Returns the name of the record, by NameOf, and of the set.
  std::string Describe() final;

 protected:
  // Returns the index of the current record.
  uint32_t Current() const { return order_.RecordAt(epoch_, place_); }
  // Returns whether an epoch has ended since the last call.
  bool TakeEpochEnd();
  // Returns the name of a record in messages.
  virtual std::string NameOf(uint32_t record) const = 0;

 private:
  const BalancedOrder order_;
  const uint64_t skip_;
  uint64_t epoch_ = 0, place_;
  bool epoch_ended_ = false;
};

}  // namespace trainer
