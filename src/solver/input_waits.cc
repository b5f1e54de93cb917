#include "input_waits.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/net/data_layers.h"

namespace trainer {
namespace {

std::string Percent(double share) { return Join(std::lround(100 * share), " %"); }

// The sums of a data layer since the start of the run.
InputWork WorkOfLayer(const std::string& name, const InputCounters& counters) {
  InputWork work;
  work.layer = name;
  work.waited = counters.wait_seconds;
  work.read = counters.work.read;
  work.decode = counters.work.decode;
  work.transform = counters.work.transform;
  work.threads = counters.threads;
  work.cores = AvailableThreads();
  return work;
}

InputWork Since(const InputWork& now, const InputWork& before, double seconds) {
  InputWork work = now;
  work.seconds = seconds;
  work.waited -= before.waited;
  work.read -= before.read;
  work.decode -= before.decode;
  work.transform -= before.transform;
  return work;
}

}  // namespace

std::string DescribeInputWork(const InputWork& work) {
  constexpr double kWorthSaying = 0.05;
  const double share = work.seconds > 0 ? work.waited / work.seconds : 0;
  const double all = work.read + work.decode + work.transform;
  if (share < kWorthSaying) return "";
  std::string text =
      Join("Waiting for data took ", Percent(share), " of the time: layer '", work.layer, "'");
  if (!(all > 0)) return text + " is late";
  text += Join(" reads (", Percent(work.read / all), " of its work), decodes (",
               Percent(work.decode / all), ") and transforms (", Percent(work.transform / all),
               ") with ", work.threads, work.threads == 1 ? " thread. " : " threads. ");
  // One thread reads at a time; the others' work is shared.
  if (work.read >= (work.decode + work.transform) / work.threads) {
    return text +
           "Reading is the bottleneck: put the data on a faster disk or a local disk of this "
           "machine, store smaller images, or train again when the data is in the page cache";
  }
  const std::string what = work.decode >= work.transform ? "Decoding" : "Transforming";
  const std::string cure = work.decode >= work.transform
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

std::string InputWaits::Note(const Net& net, double seconds) {
  constexpr double kMinSeconds = 5, kQuietSeconds = 60;
  seconds_ += seconds;
  quiet_seconds_ = std::max(0.0, quiet_seconds_ - seconds);
  if (seconds_ < kMinSeconds || quiet_seconds_ > 0) return "";
  std::map<std::string, InputWork> now;
  InputWork worst;
  for (const auto& [layer, counters] : CountersOfDataLayers(net)) {
    const InputWork total = now[layer] = WorkOfLayer(layer, counters);
    const InputWork work = Since(total, before_[layer], seconds_);
    if (worst.layer.empty() || work.waited > worst.waited) worst = work;
  }
  before_ = std::move(now);
  seconds_ = 0;
  const std::string text = DescribeInputWork(worst);
  if (!text.empty()) quiet_seconds_ = kQuietSeconds;
  return text;
}

}  // namespace trainer
