#include "balanced_sampler.h"

#include <glog/logging.h>

#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"

namespace trainer {

BalancedSampler::BalancedSampler(BalancedOrder order, uint64_t skip, const std::string& path)
    : order_(std::move(order)), skip_(skip), place_(skip) {
  LOG(INFO) << EscapeControl(path) << ": balancing " << order_.records() << " records of "
            << order_.classes() << " classes, " << order_.smallest() << " to " << order_.largest()
            << " each: an epoch has " << order_.size() << " records, " << order_.largest()
            << " of each class";
}

uint64_t BalancedSampler::Skip(uint64_t count) {
  place_ += count;
  const uint64_t ended = place_ / order_.size();
  place_ %= order_.size();
  epoch_ += ended;
  epoch_ended_ |= ended > 0;
  return ended;
}

bool BalancedSampler::TakeEpochEnd() { return std::exchange(epoch_ended_, false); }

// These numbers and the seed define the order of the epoch.
std::string BalancedSampler::Key() const {
  return Join("balanced ", epoch_, " place ", place_, " of ", order_.size(), " records ",
              order_.records());
}

std::string BalancedSampler::Describe() { return Join(NameOf(Current()), " of ", path()); }

void BalancedSampler::Seek(const Position& position) {
  if (position.key.empty()) {
    epoch_ = 0;
    place_ = skip_;
    return;
  }
  std::string_view rest = position.key;
  uint64_t epoch = 0, place = 0, size = 0, records = 0;
  if (!TakeNumber(&rest, "balanced ", &epoch) || !TakeNumber(&rest, " place ", &place) ||
      !TakeNumber(&rest, " of ", &size) || !TakeNumber(&rest, " records ", &records) ||
      !rest.empty() || place >= size) {
    throw Error(ErrorCode::kBadSnapshot, {path()},
                Join("the snapshot stopped at ", QuoteKey(position.key),
                     ", which is not a position in a balanced epoch; set sampling as in the run of "
                     "the snapshot, or start from the weights with --weights"));
  }
  if (size != order_.size() || records != order_.records()) {
    throw Error(ErrorCode::kBadSnapshot, {path()},
                Join("the set has ", order_.records(), " records now, ", order_.size(),
                     " in a balanced epoch, but had ", records, " and ", size,
                     " when the snapshot was made; use the data set of that run"));
  }
  epoch_ = epoch;
  place_ = place;
}

}  // namespace trainer
