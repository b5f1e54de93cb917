#include "time_report.h"

#include <glog/logging.h>

#include <algorithm>
#include <iomanip>

#include "table.h"
#include "trainer/base/text.h"
#include "trainer/net/traffic.h"

namespace trainer {
namespace {

// A layer's work in one direction: floating-point operations and bytes, 0 where not counted.
struct Work {
  double flops = 0, bytes = 0;
};

// Billions per second; nothing where nothing is counted or the clock saw nothing.
std::optional<double> Rate(double work, double ms) {
  if (work <= 0 || ms <= 0) return std::nullopt;
  return 1e-6 * work / ms;
}

// The share of the machine's peak, in percent: the time that the products or the memory alone would
// take, whichever is longer, in the time taken. Nothing where values came faster than memory gives
// them, from caches, which have no such peak. The peak is measured at another moment: products that
// were faster then ran at it.
std::optional<double> OfPeak(const Work& work, double ms, const MachinePeak& peak) {
  if (work.flops + work.bytes <= 0 || ms <= 0) return std::nullopt;
  const double products = 1e-4 * work.flops / peak.gflops / ms;
  const double memory = 1e-4 * work.bytes / peak.gbytes / ms;
  if (memory > 100 && memory > products) return std::nullopt;
  return std::min(100.0, std::max(products, memory));
}

std::string PeakCell(const Work& work, double ms, const MachinePeak& peak) {
  const std::optional<double> share = OfPeak(work, ms, peak);
  if (share) return Fixed(*share, 1) + "%";
  return work.bytes > 0 && ms > 0 ? "cache" : "";
}

Work ForwardWork(const Net& net, int i) {
  return {2.0 * static_cast<double>(net.GetLayer(i).Macs()),
          static_cast<double>(TrafficOf(net, i).forward)};
}

// Backward computes the gradient of the weights and, if something before learns, that of the input.
Work BackwardWork(const Net& net, int i) {
  if (!net.RunsBackward(i)) return {};
  const caffe::LayerParameter& layer = net.LayerAt(i).proto();
  const bool input = layer.bottom_size() > 0 && net.Gradient(layer.bottom(0)).data != nullptr;
  return {2.0 * static_cast<double>(net.GetLayer(i).Macs()) * (input ? 2 : 1),
          static_cast<double>(TrafficOf(net, i).backward)};
}

std::string Cell(const std::optional<double>& value) { return value ? Fixed(*value, 1) : ""; }

// Of one direction, over all layers.
double SumOf(const Times& times, Samples LayerTimes::*direction,
             double (Samples::*figure)() const) {
  double sum = 0;
  for (const LayerTimes& layer : times.layers) sum += ((layer.*direction).*figure)();
  return sum;
}

double MedianOfLayers(const Times& times) {
  return SumOf(times, &LayerTimes::forward, &Samples::Median) +
         SumOf(times, &LayerTimes::backward, &Samples::Median);
}

double ShareOf(const Times& times, const LayerTimes& layer) {
  const double whole = MedianOfLayers(times);
  return whole > 0 ? 100 * (layer.forward.Median() + layer.backward.Median()) / whole : 0;
}

// All layers forward and backward, and the update: work, and the least time that it takes at the
// machine's peaks, where each layer and direction waits for its products or for its memory alone.
struct LeastTime {
  Work work;
  double ms = 0;
};

double LeastMs(const Work& work, const MachinePeak& peak) {
  if (peak.gflops <= 0 || peak.gbytes <= 0) return 0;
  return 1e-6 * std::max(work.flops / peak.gflops, work.bytes / peak.gbytes);
}

LeastTime LeastTimeOf(const Net& net, const Times& times) {
  LeastTime least;
  const auto add = [&](const Work& work) {
    least.work.flops += work.flops;
    least.work.bytes += work.bytes;
    least.ms += LeastMs(work, times.peak);
  };
  for (int i = 0; i < net.NumLayers(); ++i) {
    add(ForwardWork(net, i));
    if (!times.backward.empty()) add(BackwardWork(net, i));
  }
  add({0, static_cast<double>(times.update_bytes)});
  return least;
}

// "An iteration computes 3.1 GFLOP and moves 0.4 GB at least: 9.8 ms at the peaks, 61 % of its 16.1
// ms."
std::string LeastTimeText(const Net& net, const Times& times) {
  const LeastTime least = LeastTimeOf(net, times);
  const double ms = times.Iteration().Median();
  if (least.ms <= 0 || ms <= 0) return "";
  return Wrap(Join("An iteration computes ", Fixed(1e-9 * least.work.flops, 3),
                   " GFLOP and moves at least ", Fixed(1e-6 * least.work.bytes, 1), " MB, ",
                   times.update_bytes > 0 ? "the update's included: " : "without an update: ",
                   Fixed(least.ms, 3), " ms at the peaks below, ",
                   Fixed(std::min(100.0, 100 * least.ms / ms), 1), "% of its ", Fixed(ms, 3),
                   " ms."),
              0) +
         "\n";
}

// What the layers queue in an iteration; nothing where the device does not say.
std::optional<int> OperationsOf(const Times& times) {
  std::optional<int> sum;
  for (const LayerTimes& layer : times.layers) {
    for (const std::optional<int>& count : {layer.forward_operations, layer.backward_operations}) {
      if (count) sum = sum.value_or(0) + *count;
    }
  }
  return sum;
}

// "52 kernels, copies and fills ..., 0.021 ms each on average."
std::string OperationsText(const Times& times) {
  const std::optional<int> count = OperationsOf(times);
  if (!count || *count == 0) return "";
  return Wrap(Join("Its layers queue ", *count, " kernels, copies and fills, ",
                   Fixed(times.pass.Median() / *count, 4),
                   " ms each on average; what takes a few microseconds is not more than what the "
                   "host needs to start it, unless a pass is one call (a recorded graph)."),
              0) +
         "\n";
}

std::string LayerTable(const Net& net, const Times& times) {
  Table table({"layer", "type", "fwd min", "fwd med", "bwd min", "bwd med", "share", "fwd GFLOP/s",
               "fwd GB/s", "fwd peak", "bwd GFLOP/s", "bwd GB/s", "bwd peak", "implementation"});
  for (int i = 0; i < net.NumLayers(); ++i) {
    const LayerTimes& layer = times.layers[static_cast<size_t>(i)];
    const double forward = layer.forward.Median(), backward = layer.backward.Median();
    const Work ahead = ForwardWork(net, i), back = BackwardWork(net, i);
    table.Add({net.LayerAt(i).name(), net.LayerAt(i).type(), Fixed(layer.forward.Min(), 3),
               Fixed(forward, 3), Fixed(layer.backward.Min(), 3), Fixed(backward, 3),
               Fixed(ShareOf(times, layer), 1) + "%", Cell(Rate(ahead.flops, forward)),
               Cell(Rate(ahead.bytes, forward)), PeakCell(ahead, forward, times.peak),
               Cell(Rate(back.flops, backward)), Cell(Rate(back.bytes, backward)),
               PeakCell(back, backward, times.peak), net.GetLayer(i).Implementation()});
  }
  return table.ToString();
}

std::string TotalTable(const Times& times) {
  Table table({"whole net", "min", "median"});
  const auto sum = [&](const char* name, Samples LayerTimes::*direction) {
    table.Add({name, Fixed(SumOf(times, direction, &Samples::Min), 3),
               Fixed(SumOf(times, direction, &Samples::Median), 3)});
  };
  const auto add = [&](const char* name, const Samples& samples) {
    table.Add({name, Fixed(samples.Min(), 3), Fixed(samples.Median(), 3)});
  };
  sum("forward", &LayerTimes::forward);
  sum("backward", &LayerTimes::backward);
  add("forward and backward", times.pass);
  if (!times.step.empty()) {
    table.Add({"update", "-", Fixed(times.UpdateMs(), 3)});
    add("training iteration", times.step);
  }
  table.Add({"between layers", "-",
             Fixed(std::max(0.0, times.pass.Median() - MedianOfLayers(times)), 3)});
  table.Add({"waiting for data", "-", Fixed(times.wait_ms, 3)});
  return table.ToString();
}

Json Optional(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json SamplesToJson(const Samples& samples) {
  return Json::Object()
      .Set("min_ms", samples.Min())
      .Set("median_ms", samples.Median())
      .Set("mean_ms", samples.Mean());
}

Json DirectionToJson(const Samples& samples, const Work& work, const MachinePeak& peak,
                     const std::optional<int>& operations) {
  const double ms = samples.Median();
  return SamplesToJson(samples)
      .Set("flops", work.flops)
      .Set("bytes", work.bytes)
      .Set("gflops_per_s", Optional(Rate(work.flops, ms)))
      .Set("gbytes_per_s", Optional(Rate(work.bytes, ms)))
      .Set("percent_of_peak", Optional(OfPeak(work, ms, peak)))
      .Set("operations", operations ? Json(*operations) : Json());
}

Json DeclinedToJson(const Layer& layer) {
  Json lines = Json::Array();
  for (const std::string& line : layer.Declined()) lines.Push(line);
  return lines;
}

// Which implementations were asked before the chosen ones, and why they declined.
std::string DeclinedText(const Net& net) {
  std::string text;
  for (int i = 0; i < net.NumLayers(); ++i) {
    const std::vector<std::string> lines = net.GetLayer(i).Declined();
    if (!lines.empty()) text += Join(net.LayerAt(i).name(), "\n");
    for (const std::string& line : lines) text += Join("  ", line, "\n");
  }
  return text.empty() ? ""
                      : Join("\nAsked before the implementations above, and declined:\n", text);
}

Json LayerToJson(const Net& net, const Times& times, int i) {
  const LayerTimes& layer = times.layers[static_cast<size_t>(i)];
  const int by = net.FusedInto(i);
  return Json::Object()
      .Set("name", net.LayerAt(i).name())
      .Set("type", net.LayerAt(i).type())
      .Set("implementation", net.GetLayer(i).Implementation())
      .Set("declined", DeclinedToJson(net.GetLayer(i)))
      .Set("computed_by", by < 0 ? Json() : Json(net.LayerAt(by).name()))
      .Set("percent_of_time", ShareOf(times, layer))
      .Set("forward", DirectionToJson(layer.forward, ForwardWork(net, i), times.peak,
                                      layer.forward_operations))
      .Set("backward", DirectionToJson(layer.backward, BackwardWork(net, i), times.peak,
                                       layer.backward_operations));
}

}  // namespace

void LogTimes(const Net& net, const Times& times, int iterations) {
  LOG(INFO) << "Average time per layer: ";
  for (int i = 0; i < net.NumLayers(); ++i) {
    const LayerTimes& layer = times.layers[static_cast<size_t>(i)];
    const std::string& name = net.LayerAt(i).name();
    LOG(INFO) << std::setw(10) << name << "\tforward: " << layer.forward.Mean() << " ms.";
    LOG(INFO) << std::setw(10) << name << "\tbackward: " << layer.backward.Mean() << " ms.";
  }
  const double both = times.forward.Mean() + times.backward.Mean();
  LOG(INFO) << "Average Forward pass: " << times.forward.Mean() << " ms.";
  LOG(INFO) << "Average Backward pass: " << times.backward.Mean() << " ms.";
  LOG(INFO) << "Average Forward-Backward: " << both << " ms.";
  LOG(INFO) << "Total Time: " << both * iterations << " ms.";
  LOG(INFO) << "*** Benchmark ends ***";
}

std::string TimesToText(const Net& net, const Times& times) {
  std::string update;
  if (const auto rate = Rate(static_cast<double>(times.update_bytes), times.UpdateMs())) {
    update =
        Join("The update moves ", Bytes(times.update_bytes), " at ", Fixed(*rate, 1), " GB/s.\n");
  }
  return Join(LayerTable(net, times), "\n", TotalTable(times), "\nTimes in milliseconds.\n", update,
              LeastTimeText(net, times), OperationsText(times),
              "Peak of this machine: ", Fixed(times.peak.gflops, 1), " GFLOP/s, ",
              Fixed(times.peak.gbytes, 1),
              " GB/s. A layer's peak is the least time that its products\n"
              "or its memory take at these rates, in percent of its time; cache: its values come\n"
              "faster than memory gives them. Forward and backward of the whole net are the sums\n"
              "of its layers.\n"
              "Implementations: 'onednn ...' is a kernel of oneDNN by oneDNN's name for it, which\n"
              "ends in the processor's instructions; cublasLt and cudnn are NVIDIA's; all others\n"
              "are loops of this program. 'trainer time --v=1' says why others were not taken.\n",
              VLOG_IS_ON(1) ? DeclinedText(net) : "");
}

Json TimesToJson(const Net& net, const Times& times, int iterations) {
  Json layers = Json::Array();
  for (int i = 0; i < net.NumLayers(); ++i) layers.Push(LayerToJson(net, times, i));
  Json root = Json::Object();
  root.Set("net", net.name())
      .Set("iterations", iterations)
      .Set("peak", Json::Object()
                       .Set("gflops_per_s", times.peak.gflops)
                       .Set("gbytes_per_s", times.peak.gbytes))
      .Set("layers", layers)
      .Set("forward", SamplesToJson(times.forward))
      .Set("backward", SamplesToJson(times.backward))
      .Set("pass", SamplesToJson(times.pass))
      .Set("wait_ms", times.wait_ms);
  const LeastTime least = LeastTimeOf(net, times);
  root.Set("least", Json::Object()
                        .Set("flops", least.work.flops)
                        .Set("bytes", least.work.bytes)
                        .Set("ms", least.ms));
  if (const auto operations = OperationsOf(times)) root.Set("operations", *operations);
  if (times.step.empty()) return root;
  const auto bytes = static_cast<double>(times.update_bytes);
  root.Set("training_iteration", SamplesToJson(times.step))
      .Set("update", Json::Object()
                         .Set("median_ms", times.UpdateMs())
                         .Set("bytes", times.update_bytes)
                         .Set("gbytes_per_s", Optional(Rate(bytes, times.UpdateMs()))));
  return root;
}

}  // namespace trainer
