#include "trainer/scaling/cluster.h"

#include <algorithm>

#include "trainer/parallel/exchange_rules.h"

namespace trainer {
namespace {

constexpr double kFloat = sizeof(float);

// Through mailboxes each rank writes its own numbers, then reads those of all (see node_sum.h). In
// shared gradients each rank reads its share in all of them and writes the sums there. Both move 2
// times the bytes for each rank. GPUs send all but their own share twice.
double MovedInside(const Cluster& cluster, int ranks, double bytes) {
  if (cluster.inside.by_gpus) return 2 * bytes * (ranks - 1) / ranks;
  return 2 * bytes * ranks;
}

SumTime Inside(const Cluster& cluster, double bytes) {
  const int ranks = std::min(cluster.ranks, cluster.ranks_per_machine);
  if (ranks < 2) return {};
  const bool mailed = bytes <= kMailedFloats * kFloat;
  const bool alone = cluster.machines() == 1;
  // Stages that all ranks wait for: of several machines the result is waited for as well.
  const double latency = cluster.inside.latency * (mailed && alone ? 1 : 2);
  return {latency + MovedInside(cluster, ranks, bytes) / cluster.inside.bytes_per_second, 0,
          latency};
}

// See MpiLink::SumPart. The lanes of a machine share its link.
SumTime Between(const Cluster& cluster, double bytes) {
  const int machines = cluster.machines();
  if (machines < 2) return {};
  const int others = machines - 1;
  const bool mailed = bytes <= kMailedFloats * kFloat && cluster.ranks_per_machine > 1;
  const double lanes = mailed ? 1 : std::min(cluster.ranks, cluster.ranks_per_machine);
  double left = bytes / kFloat / lanes;  // numbers of a lane
  SumTime time;
  while (left > 0) {
    const double part = std::min<double>(left, kPartFloats);
    const bool whole = part <= kWholeFloats;
    const double piece = whole ? part : part / machines;
    const int steps = whole ? 1 : 2;
    time.between +=
        steps * cluster.link.Seconds(piece * others * lanes * cluster.wire_bytes, others);
    time.latency += steps * cluster.link.Latency(others);
    left -= part;
  }
  return time;
}

}  // namespace

SumTime TimeOfSum(const Cluster& cluster, double bytes) {
  const SumTime inside = Inside(cluster, bytes), between = Between(cluster, bytes);
  return {inside.inside, between.between, inside.latency + between.latency};
}

size_t BucketBytesOf(const Cluster& cluster) {
  if (cluster.ranks < 2) return 0;
  return BucketBytes(
      {TimeOfSum(cluster, kFloat).Total(), kSpeedBytes / TimeOfSum(cluster, kSpeedBytes).Total()});
}

}  // namespace trainer
