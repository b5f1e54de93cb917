#include "replica_times.h"

#include <algorithm>
#include <vector>

#include "trainer/base/thread/spin.h"
#include "trainer/net/data_waits.h"

namespace trainer {
namespace {

TimeSpent operator-(const TimeSpent& a, const TimeSpent& b) {
  return {a.seconds - b.seconds, a.exchange - b.exchange, a.data - b.data, a.hidden - b.hidden};
}
TimeSpent operator+(const TimeSpent& a, const TimeSpent& b) {
  return {a.seconds + b.seconds, a.exchange + b.exchange, a.data + b.data, a.hidden + b.hidden};
}

}  // namespace

ReplicasReport Summarize(std::span<const TimeSpent> replicas, int* slowest) {
  constexpr double kMuch = 0.1;
  *slowest = -1;
  ReplicasReport report;
  TimeSpent all;
  for (const TimeSpent& one : replicas) all = all + one;
  if (!(all.seconds > 0)) return report;
  report.exchange = all.exchange / all.seconds;
  report.data = all.data / all.seconds;
  const double hidden = std::max(all.hidden, 0.0);
  if (hidden > 0) report.hidden = hidden / (hidden + all.exchange);
  report.computing = 1 - report.exchange - report.data;
  const auto last = std::ranges::min_element(replicas, {}, &TimeSpent::exchange);
  const TimeSpent others = all - *last;
  if (!(others.seconds > 0) || !(last->seconds > 0)) return report;
  const double cost = (others.exchange / others.seconds) - (last->exchange / last->seconds);
  if (cost <= kMuch) return report;
  *slowest = static_cast<int>(last - replicas.begin());
  report.cost = cost;
  report.slowest_data = last->data / last->seconds;
  return report;
}

TimeSpent ReplicaTimes::Now() const {
  return {static_cast<double>(MonotonicNs()) * 1e-9, watch_.SecondsSpent(),
          SecondsWaitedForData(net_), watch_.SecondsHidden()};
}

// Each replica's numbers where the others give zeros.
ReplicasReport ReplicaTimes::Report() {
  constexpr size_t kNumbers = 4;
  const Rank replica = group_.replica();
  const TimeSpent now = Now(), own = now - begin_;
  begin_ = now;
  std::vector<float> numbers(kNumbers * static_cast<size_t>(replica.size));
  const size_t at = kNumbers * static_cast<size_t>(replica.rank);
  numbers[at] = static_cast<float>(own.seconds);
  numbers[at + 1] = static_cast<float>(own.exchange);
  numbers[at + 2] = static_cast<float>(own.data);
  numbers[at + 3] = static_cast<float>(own.hidden);
  group_.Sum(numbers);
  std::vector<TimeSpent> replicas;
  for (size_t i = 0; i < numbers.size(); i += kNumbers) {
    replicas.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]});
  }
  int slowest = -1;
  ReplicasReport report = Summarize(replicas, &slowest);
  if (slowest >= 0) report.slowest = watch_.NameOf(slowest);
  return report;
}

ReplicaTimes::Pause::Pause(ReplicaTimes* times)
    : times_(times != nullptr && !times->paused_ ? times : nullptr) {
  if (times_ == nullptr) return;
  times_->paused_ = true;
  begin_ = times_->Now();
}

ReplicaTimes::Pause::~Pause() {
  if (times_ == nullptr) return;
  times_->begin_ = times_->begin_ + (times_->Now() - begin_);
  times_->paused_ = false;
}

}  // namespace trainer
