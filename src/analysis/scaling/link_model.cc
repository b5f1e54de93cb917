#include "trainer/analysis/scaling/link_model.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Bandwidths: Ethernet carries 1448 bytes of a TCP stream in 1538 bytes on the wire (IEEE 802.3:
// preamble, frame, gap; IP and TCP headers with time stamps), 94.1 % of the nominal rate.
// InfiniBand HDR and NDR have 200 and 400 Gbit/s (IBTA's roadmap); large MPI messages reach about
// 97 %. NVLink has 600 and 900 GB/s for an A100 and an H100 (NVIDIA's data sheets), which count
// both directions; NCCL's large sums reach about 80 % of one direction. Latencies of one MPI
// message between two neighbours on one switch: about 1 us for InfiniBand (the adapters' data
// sheets say 0.6 us, MPI adds its own), 2 us for sums over NVLink. TCP takes 15 to 50 us, depending
// on processor, adapter and interrupt settings: its four values are only orders of magnitude.
// `trainer bench-comm --json=FILE` measures the actual link.
constexpr KnownLink kLinks[] = {
    {"1GbE", 50e-6, 117.7e6, 4e-6, "Ethernet, TCP"},
    {"10GbE", 25e-6, 1.177e9, 4e-6, "Ethernet, TCP"},
    {"25GbE", 20e-6, 2.942e9, 4e-6, "Ethernet, TCP"},
    {"100GbE", 15e-6, 11.77e9, 4e-6, "Ethernet, TCP with several streams or RoCE"},
    {"HDR", 1.2e-6, 24.2e9, 0.3e-6, "InfiniBand, 200 Gbit/s"},
    {"NDR", 1.1e-6, 48.5e9, 0.3e-6, "InfiniBand, 400 Gbit/s"},
    {"NVLink3", 2e-6, 240e9, 0.5e-6, "between the GPUs of an A100 machine"},
    {"NVLink4", 2e-6, 360e9, 0.5e-6, "between the GPUs of an H100 machine"},
};

}  // namespace

LinkModel::LinkModel(std::string name, double latency, double bytes_per_second, double per_message)
    : name_(std::move(name)),
      points_{{0, latency}, {bytes_per_second, latency + 1}},
      per_message_(per_message) {}

LinkModel::LinkModel(std::string name, std::vector<TransferTime> points, double per_message)
    : name_(std::move(name)), points_(std::move(points)), per_message_(per_message) {
  std::ranges::sort(points_, {}, &TransferTime::bytes);
  for (size_t i = 1; i < points_.size(); ++i) {
    points_[i].seconds = std::max(points_[i].seconds, points_[i - 1].seconds);
  }
  if (points_.size() < 2 || points_.front().bytes == points_.back().bytes) {
    throw Error(ErrorCode::kData, Join(name_, ": at least two sizes must be measured"));
  }
}

double LinkModel::Seconds(double bytes, int messages) const {
  const double more = per_message_ * std::max(0, messages - 1);
  if (bytes <= points_.front().bytes) return points_.front().seconds + more;
  size_t next = 1;
  while (next + 1 < points_.size() && points_[next].bytes < bytes) ++next;
  const TransferTime &a = points_[next - 1], &b = points_[next];
  return more + a.seconds + (b.seconds - a.seconds) * (bytes - a.bytes) / (b.bytes - a.bytes);
}

double LinkModel::Latency(int messages) const {
  return points_.front().seconds + per_message_ * std::max(0, messages - 1);
}

double LinkModel::BytesPerSecond() const {
  const TransferTime &a = points_[points_.size() - 2], &b = points_.back();
  return (b.bytes - a.bytes) / std::max(1e-12, b.seconds - a.seconds);
}

std::span<const KnownLink> KnownLinks() { return kLinks; }

const KnownLink* FindLink(const std::string& name) {
  const auto found = std::ranges::find_if(
      kLinks, [&](const KnownLink& link) { return LowerCase(link.name) == LowerCase(name); });
  return found == std::end(kLinks) ? nullptr : found;
}

LinkModel MakeLinkModel(const KnownLink& known) {
  return {known.name, known.latency, known.bytes_per_second, known.per_message};
}

}  // namespace trainer
