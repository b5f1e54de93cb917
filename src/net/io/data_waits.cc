#include "trainer/net/data_waits.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/layers/waits.h"

namespace trainer {
namespace {

std::string Percent(double share) { return Join(std::lround(100 * share), " %"); }

// The sums of a data layer from the start on.
DataWork WorkOfLayer(const std::string& name, const InputCounters& counters) {
  DataWork work;
  work.layer = name;
  work.waited = counters.wait_seconds;
  work.read = counters.work.read;
  work.decode = counters.work.decode;
  work.augment = counters.work.transform;
  work.threads = counters.threads;
  work.cores = AvailableThreads();
  return work;
}

DataWork Since(const DataWork& now, const DataWork& before, double seconds) {
  DataWork work = now;
  work.seconds = seconds;
  work.waited -= before.waited;
  work.read -= before.read;
  work.decode -= before.decode;
  work.augment -= before.augment;
  return work;
}

// The first layer that reads records, or null.
const Node* FirstReader(const Net& net) {
  const auto found = std::ranges::find_if(
      net.graph().nodes, [](const Node& node) { return node.layer->Waits() != nullptr; });
  return found == net.graph().nodes.end() ? nullptr : &*found;
}

}  // namespace

double SecondsWaitedForData(const Net& net) {
  double seconds = 0;
  for (const Node& node : net.graph().nodes) seconds += SecondsWaitedFor(*node.layer);
  return seconds;
}

std::string DescribeWork(const DataWork& work) {
  constexpr double kWorthSaying = 0.05;
  const double share = work.seconds > 0 ? work.waited / work.seconds : 0;
  const double all = work.read + work.decode + work.augment;
  if (share < kWorthSaying) return "";
  std::string text =
      Join("Waiting for data took ", Percent(share), " of the time: layer '", work.layer, "'");
  if (!(all > 0)) return text + " is late";
  text += Join(" reads (", Percent(work.read / all), " of its work), decodes (",
               Percent(work.decode / all), ") and transforms (", Percent(work.augment / all),
               ") with ", work.threads, work.threads == 1 ? " thread. " : " threads. ");
  // One thread reads at a time; the others' work is shared.
  if (work.read >= (work.decode + work.augment) / work.threads) {
    return text +
           "Reading is the bottleneck: put the data on a faster disk or a local disk of this "
           "machine, store smaller images, or train again when the data is in the page cache";
  }
  const std::string what = work.decode >= work.augment ? "Decoding" : "Transforming";
  const std::string cure = work.decode >= work.augment
                               ? "store smaller images or raw pixels"
                               : "use fewer transformations in transform_param";
  if (work.threads < work.cores) {
    return text + what +
           Join(" is the bottleneck: ", cure, ", or set data_param.threads (there are ", work.cores,
                " cores)");
  }
  return text + what +
         Join(" is the bottleneck, and this run has only ", work.cores,
              work.cores == 1 ? " core" : " cores", ": ", cure, ", or ask for more cores");
}

std::string DataWaits::Note(const Net& net, double seconds) {
  constexpr double kMinSeconds = 5, kQuietSeconds = 60;
  seconds_ += seconds;
  quiet_seconds_ = std::max(0.0, quiet_seconds_ - seconds);
  if (seconds_ < kMinSeconds || quiet_seconds_ > 0) return "";
  std::vector<DataWork> now;
  for (const Node& node : net.graph().nodes) {
    const InputCounters* const counters = node.layer->Waits();
    if (counters != nullptr) now.push_back(WorkOfLayer(node.spec.name(), *counters));
  }
  before_.resize(now.size());
  DataWork worst;
  for (size_t i = 0; i < now.size(); ++i) {
    const DataWork work = Since(now[i], before_[i], seconds_);
    if (i == 0 || work.waited > worst.waited) worst = work;
  }
  before_ = std::move(now);
  seconds_ = 0;
  const std::string text = DescribeWork(worst);
  if (!text.empty()) quiet_seconds_ = kQuietSeconds;
  return text;
}

int64_t EpochOf(const Net& net) {
  const Node* const reader = FirstReader(net);
  return reader == nullptr ? -1 : EpochOf(*reader->layer);
}

int64_t RecordsPerPass(const Net& net) {
  const Node* const reader = FirstReader(net);
  if (reader == nullptr) return 0;
  const Shape& shape = net.graph().values[reader->out[0]].shape;
  return shape.Rank() == 0 ? 1 : shape[0];
}

}  // namespace trainer
