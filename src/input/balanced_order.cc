#include "balanced_order.h"

#include <algorithm>
#include <map>

#include "trainer/base/random/permutation.h"

namespace trainer {

BalancedOrder::BalancedOrder(std::span<const int32_t> labels, const PhiloxKey& key)
    : key_(key), records_(labels.size()) {
  std::map<int32_t, uint64_t> next;  // by label: the number of records, then the next free element
  for (const int32_t label : labels) ++next[label];
  uint64_t end = 0;
  smallest_ = labels.size();
  for (auto& [label, count] : next) {
    first_.push_back(end);
    smallest_ = std::min(smallest_, count);
    largest_ = std::max(largest_, count);
    end += count;
    count = first_.back();
  }
  first_.push_back(end);
  for (uint32_t i = 0; i < labels.size(); ++i) records_[next[labels[i]]++] = i;
}

uint32_t BalancedOrder::RecordAt(uint64_t epoch, uint64_t place) const {
  constexpr uint32_t kFirstPass = 0x40000000;  // transforms draw from the passes before it
  const uint32_t pass = kFirstPass + static_cast<uint32_t>(epoch);
  const uint64_t at = PermutedAt(key_, pass, 0, size(), place);
  const uint64_t in_class = at / largest_, turn = at % largest_;
  const uint64_t count = first_[in_class + 1] - first_[in_class];
  uint64_t member = turn % count;
  if (turn >= largest_ / count * count) {  // the last turn has places for some records only
    member = PermutedAt(key_, pass, static_cast<uint32_t>(in_class + 1), count, member);
  }
  return records_[first_[in_class] + member];
}

}  // namespace trainer
