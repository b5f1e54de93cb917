#include "rank_times.h"

#include <algorithm>
#include <vector>

#include "trainer/base/thread/spin.h"
#include "trainer/net/data_layers.h"

namespace trainer {
namespace {

RankTime operator-(const RankTime& a, const RankTime& b) {
  return {a.seconds - b.seconds, a.exchange - b.exchange, a.data - b.data, a.hidden - b.hidden};
}
RankTime operator+(const RankTime& a, const RankTime& b) {
  return {a.seconds + b.seconds, a.exchange + b.exchange, a.data + b.data, a.hidden + b.hidden};
}

}  // namespace

RanksReport Summarize(std::span<const RankTime> ranks, int* straggler) {
  constexpr double kMuch = 0.1;
  *straggler = -1;
  RanksReport report;
  RankTime all;
  for (const RankTime& one : ranks) all = all + one;
  if (!(all.seconds > 0)) return report;
  report.exchange = all.exchange / all.seconds;
  report.data = all.data / all.seconds;
  const double hidden = std::max(all.hidden, 0.0);
  if (hidden > 0) report.hidden = hidden / (hidden + all.exchange);
  report.computing = 1 - report.exchange - report.data;
  const auto last = std::ranges::min_element(ranks, {}, &RankTime::exchange);
  const RankTime others = all - *last;
  if (!(others.seconds > 0) || !(last->seconds > 0)) return report;
  const double cost = (others.exchange / others.seconds) - (last->exchange / last->seconds);
  if (cost <= kMuch) return report;
  *straggler = static_cast<int>(last - ranks.begin());
  report.cost = cost;
  report.slowest_data = last->data / last->seconds;
  return report;
}

RankTime RankTimes::Now() const {
  const CommStats stats = group_.stats().value_or(CommStats{});
  return {static_cast<double>(MonotonicNs()) * 1e-9, stats.seconds, SecondsWaitedForData(net_),
          stats.overlapped};
}

// The all-reduce works as a gather: each rank fills its own numbers and leaves zeros for the
// others.
RanksReport RankTimes::Report() {
  constexpr size_t kNumbers = 4;
  const Rank rank = group_.rank();
  const RankTime now = Now(), own = now - begin_;
  begin_ = now;
  std::vector<float> numbers(kNumbers * static_cast<size_t>(rank.size));
  const size_t at = kNumbers * static_cast<size_t>(rank.rank);
  numbers[at] = static_cast<float>(own.seconds);
  numbers[at + 1] = static_cast<float>(own.exchange);
  numbers[at + 2] = static_cast<float>(own.data);
  numbers[at + 3] = static_cast<float>(own.hidden);
  group_.AllReduce(numbers);
  std::vector<RankTime> ranks;
  for (size_t i = 0; i < numbers.size(); i += kNumbers) {
    ranks.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]});
  }
  int straggler = -1;
  RanksReport report = Summarize(ranks, &straggler);
  if (straggler >= 0) report.slowest = group_.NameOf(straggler);
  return report;
}

RankTimes::Pause::Pause(RankTimes* times)
    : times_(times != nullptr && !times->paused_ ? times : nullptr) {
  if (times_ == nullptr) return;
  times_->paused_ = true;
  begin_ = times_->Now();
}

RankTimes::Pause::~Pause() {
  if (times_ == nullptr) return;
  times_->begin_ = times_->begin_ + (times_->Now() - begin_);
  times_->paused_ = false;
}

}  // namespace trainer
