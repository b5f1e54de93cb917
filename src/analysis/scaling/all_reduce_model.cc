#include "scaling/all_reduce_model.h"

#include <algorithm>

#include "trainer/parallel/all_reduce_limits.h"

namespace trainer {
namespace {

constexpr double kFloat = sizeof(float);

// Returns the bytes that the ranks of a machine read and write. With mailboxes, each rank writes
// its numbers and reads the numbers of all ranks (see node_sum.h). With shared gradients, each rank
// reads its chunk from all of them and writes the sums. Both move twice the bytes per rank. GPUs
// send all but their own chunk twice.
double MovedInside(const ClusterModel& cluster, int ranks, double bytes) {
  if (cluster.inside.by_gpus) return 2 * bytes * (ranks - 1) / ranks;
  return 2 * bytes * ranks;
}

// Returns the part of an all-reduce within a machine; 0 with one rank per machine.
AllReduceTime Inside(const ClusterModel& cluster, double bytes) {
  const int ranks = std::min(cluster.ranks, cluster.ranks_per_machine);
  if (ranks < 2) return {};
  const bool mailed = bytes <= kEagerFloats * kFloat;
  const bool alone = cluster.machines() == 1;
  // All ranks wait once for the sums, and on several machines also for the result.
  const double latency = cluster.inside.latency * (mailed && alone ? 1 : 2);
  return {latency + MovedInside(cluster, ranks, bytes) / cluster.inside.bytes_per_second, 0,
          latency};
}

// Returns the part of an all-reduce between machines; 0 with one machine. Follows
// InterNodeAllReduce::SumPart. The lanes of a machine (one for each rank, or a single one for small
// sums) share its link.
AllReduceTime Between(const ClusterModel& cluster, double bytes) {
  const int machines = cluster.machines();
  if (machines < 2) return {};
  const int others = machines - 1;
  const bool mailed = bytes <= kEagerFloats * kFloat && cluster.ranks_per_machine > 1;
  const double lanes = mailed ? 1 : std::min(cluster.ranks, cluster.ranks_per_machine);
  double left = bytes / kFloat / lanes;  // numbers per lane
  AllReduceTime time;
  while (left > 0) {
    const double part = std::min<double>(left, kChunkFloats);
    const bool whole = part <= kDirectFloats;
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

AllReduceTime PredictAllReduce(const ClusterModel& cluster, double bytes) {
  const AllReduceTime inside = Inside(cluster, bytes), between = Between(cluster, bytes);
  return {inside.inside, between.between, inside.latency + between.latency};
}

size_t ChooseBucketBytes(const ClusterModel& cluster) {
  if (cluster.ranks < 2) return 0;
  return BucketBytes(PredictAllReduce(cluster, kFloat).Total(),
                     kSpeedBytes / PredictAllReduce(cluster, kSpeedBytes).Total());
}

}  // namespace trainer
