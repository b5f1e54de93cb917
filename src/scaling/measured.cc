#include "trainer/scaling/measured.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/parallel/exchange_rules.h"

namespace trainer {
namespace {

// Of the smallest and the largest sum.
InsideMachine InsideOf(const MeasuredSums& measured) {
  const auto [low, high] = std::ranges::minmax(measured.sums, {}, &TransferTime::bytes);
  const double moved = 2.0 * measured.ranks * (high.bytes - low.bytes);
  InsideMachine inside;
  inside.latency = low.seconds / (low.bytes > kMailedFloats * sizeof(float) ? 2 : 1);
  inside.bytes_per_second = moved / std::max(1e-12, high.seconds - low.seconds);
  return inside;
}

// Each sum gives the time of one step between machines: what is left of it without the machines'
// own part, divided by the steps that it has.
std::vector<TransferTime> StepsBetween(const Cluster& cluster, const MeasuredSums& measured) {
  // A link that counts: one second for each step.
  Cluster counter = cluster;
  counter.link = Link("steps", {{0, 1}, {1, 1}}, 0);
  Cluster bytes = cluster;  // and one that takes a second for each byte
  bytes.link = Link("bytes", 0, 1, 0);
  std::map<double, std::pair<double, int>> of_bytes;
  for (const TransferTime& sum : measured.sums) {
    const double steps = TimeOfSum(counter, sum.bytes).between;
    const double sent = TimeOfSum(bytes, sum.bytes).between / steps;
    const double inside = std::min(TimeOfSum(cluster, sum.bytes).inside, 0.8 * sum.seconds);
    auto& [seconds, count] = of_bytes[std::round(sent)];
    seconds += (sum.seconds - inside) / steps;
    ++count;
  }
  std::vector<TransferTime> points;
  for (const auto& [sent, of] : of_bytes) points.push_back({sent, of.first / of.second});
  return points;
}

}  // namespace

Cluster ClusterOf(const std::string& name, const MeasuredSums& measured,
                  const InsideMachine& inside) {
  const bool sensible =
      measured.machines > 0 && measured.ranks >= 2 && measured.ranks_per_machine > 0 &&
      measured.overlap_cost >= 0 && measured.overlap_cost < 1 &&
      std::ranges::all_of(measured.sums,
                          [](const TransferTime& sum) { return sum.bytes > 0 && sum.seconds > 0; });
  if (!sensible || measured.sums.size() < 2) {
    throw Error(ErrorCode::kData, Join(name,
                                       ": the file needs measurements of at least two ranks and "
                                       "two sizes; run 'trainer bench-comm --json' again"));
  }
  Cluster cluster;
  cluster.ranks = measured.ranks;
  cluster.ranks_per_machine = measured.ranks_per_machine;
  cluster.overlap_cost = measured.overlap_cost;
  cluster.inside = inside;
  if (measured.machines == 1) {
    cluster.inside = InsideOf(measured);
    return cluster;
  }
  // Of further messages nothing is known: TCP's, or what the smallest step takes.
  constexpr double kPerMessage = 4e-6;
  const std::vector<TransferTime> points = StepsBetween(cluster, measured);
  cluster.link = Link(name, points, std::min(kPerMessage, points.front().seconds));
  return cluster;
}

}  // namespace trainer
