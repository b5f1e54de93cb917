#include "scaling/measured_cluster.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "scaling/all_reduce_model.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/parallel/all_reduce_limits.h"

namespace trainer {
namespace {

// Fits latency and bandwidth to the smallest and the largest sum, by the formulas of
// PredictAllReduce for one machine.
ClusterModel::IntraNode FitIntraNode(const AllReduceResults& measured) {
  const auto [low, high] = std::ranges::minmax(measured.sums, {}, &TransferTime::bytes);
  const double moved = 2.0 * measured.ranks * (high.bytes - low.bytes);
  ClusterModel::IntraNode inside;
  inside.latency = low.seconds / (low.bytes > kEagerFloats * sizeof(float) ? 2 : 1);
  inside.bytes_per_second = moved / std::max(1e-12, high.seconds - low.seconds);
  return inside;
}

// Returns the time of one step between machines by the bytes that it sends: the measured time
// without the part within the machines, divided by the number of steps. Sums that send the same
// bytes per step are averaged.
std::vector<TransferTime> StepsBetween(const ClusterModel& cluster,
                                       const AllReduceResults& measured) {
  // This link takes one second per step, so it counts steps.
  ClusterModel counter = cluster;
  counter.link = LinkModel("steps", {{0, 1}, {1, 1}}, 0);
  ClusterModel bytes = cluster;  // this link takes one second per byte
  bytes.link = LinkModel("bytes", 0, 1, 0);
  std::map<double, std::pair<double, int>> of_bytes;
  for (const TransferTime& sum : measured.sums) {
    const double steps = PredictAllReduce(counter, sum.bytes).between;
    const double sent = PredictAllReduce(bytes, sum.bytes).between / steps;
    const double inside = std::min(PredictAllReduce(cluster, sum.bytes).inside, 0.8 * sum.seconds);
    auto& [seconds, count] = of_bytes[std::round(sent)];
    seconds += (sum.seconds - inside) / steps;
    ++count;
  }
  std::vector<TransferTime> points;
  for (const auto& [sent, of] : of_bytes) points.push_back({sent, of.first / of.second});
  return points;
}

}  // namespace

ClusterModel FitCluster(const std::string& name, const AllReduceResults& measured,
                        const ClusterModel::IntraNode& inside) {
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
  ClusterModel cluster;
  cluster.ranks = measured.ranks;
  cluster.ranks_per_machine = measured.ranks_per_machine;
  cluster.overlap_cost = measured.overlap_cost;
  cluster.inside = inside;
  if (measured.machines == 1) {
    cluster.inside = FitIntraNode(measured);
    return cluster;
  }
  // The cost of further messages was not measured: TCP's cost, but at most the time of the smallest
  // step.
  constexpr double kPerMessage = 4e-6;
  const std::vector<TransferTime> points = StepsBetween(cluster, measured);
  cluster.link = LinkModel(name, points, std::min(kPerMessage, points.front().seconds));
  return cluster;
}

}  // namespace trainer
