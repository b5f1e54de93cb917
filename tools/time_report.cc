#include "time_report.h"

#include <glog/logging.h>

#include <algorithm>
#include <iomanip>

#include "time_work.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kAboutRates[] = R"(
A column 'bwd' is the backward step; the column before it is the forward step.
'peak' compares a layer with the machine: the shortest possible time for its
products or its memory traffic, in percent of the measured time. 'cache': its
values come from the cache, faster than memory delivers them. 'fewer': it
computes fewer products than GFLOP/s counts, as Winograd convolutions do. The
peak of the machine is the speed of a large matrix product, or of a layer that
was faster. Forward and backward of the whole net are the sums over its layers.
The time of a fused layer counts for the layer that computes it.
)";
constexpr char kAboutImplementations[] = R"(
Implementations: 'onednn ...' is a kernel of oneDNN; the end of its name is the
instruction set that it uses. cublasLt and cuDNN are libraries of NVIDIA. All
others are loops of this program. 'trainer time --v=1' says why other
implementations were not chosen.
)";

std::string PeakCell(const Work& work, double ms, const MachinePeak& peak) {
  const PeakShare share = OfPeak(work, ms, peak);
  switch (share.kind) {
    case PeakShare::Kind::kPercent:
      return Fixed(share.percent, 1) + "%";
    case PeakShare::Kind::kCached:
      return "cache";
    case PeakShare::Kind::kFewerProducts:
      return "fewer";
    default:
      return "";
  }
}

std::string Cell(const std::optional<double>& value) { return value ? Fixed(*value, 1) : ""; }
std::string Count(const std::optional<int>& value) { return value ? Join(*value) : ""; }

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

// "An iteration computes 3.1 GFLOP and moves 0.4 GB at least: 9.8 ms at these peaks, 61 % of
// its 16.1 ms."
std::string LeastTimeText(const Net& net, const Times& times) {
  const LeastTime least = LeastTimeOf(net, times);
  const double ms = times.Iteration().Median();
  if (least.ms <= 0 || ms <= 0) return "";
  const bool is_share = least.ms <= ms;  // of a pass faster than its layers one by one: none
  return Wrap(Join("An iteration computes ", Fixed(1e-9 * least.work.flops, 3),
                   " GFLOP and moves at least ", Fixed(1e-6 * least.work.bytes, 1), " MB, ",
                   times.update_bytes > 0 ? "the update's included: " : "without an update: ",
                   Fixed(least.ms, 3), " ms at these peaks",
                   is_share ? Join(", ", Fixed(100 * least.ms / ms, 1), "% of its ") : "; it took ",
                   Fixed(ms, 3), " ms."),
              0) +
         "\n";
}

// "52 kernels, copies and fills ..., 0.021 ms each on average."
std::string OperationsText(const Times& times) {
  const std::optional<int> count = OperationsOf(times);
  if (!count || *count == 0) return "";
  return Wrap(Join("The layers of a pass start ", *count, " kernels, copies and fills, ",
                   Fixed(times.pass.Median() / *count, 4),
                   " ms each on average. The host needs a few microseconds to start each of them, "
                   "unless the whole pass is one recorded CUDA graph."),
              0) +
         "\n";
}

std::string TimeTable(const Net& net, const Times& times) {
  Table table({"layer", "type", "fwd min", "fwd med", "bwd min", "bwd med", "share, %"});
  for (int i = 0; i < net.NumLayers(); ++i) {
    const LayerTimes& layer = times.layers[static_cast<size_t>(i)];
    if (const int by = net.FusedInto(i); by >= 0) {
      table.Add({net.LayerAt(i).name(),
                 Join(net.LayerAt(i).type(), " (in ", net.LayerAt(by).name(), ")"), "", "", "", "",
                 ""});
      continue;
    }
    table.Add({net.LayerAt(i).name(), net.LayerAt(i).type(), Fixed(layer.forward.Min(), 3),
               Fixed(layer.forward.Median(), 3), Fixed(layer.backward.Min(), 3),
               Fixed(layer.backward.Median(), 3), Fixed(ShareOf(times, layer), 1)});
  }
  return table.ToString();
}

// Rates and shares of the peak, of layers that have any; what is queued where the device tells.
std::string RateTable(const Net& net, const Times& times) {
  const bool counts = OperationsOf(times).has_value();
  std::vector<std::string> head = {"layer", "GFLOP/s", "bwd", "GB/s", "bwd", "peak", "bwd"};
  if (counts) head.insert(head.end(), {"kernels", "bwd"});
  Table table(head);
  for (int i = 0; i < net.NumLayers(); ++i) {
    const LayerTimes& layer = times.layers[static_cast<size_t>(i)];
    const double forward = layer.forward.Median(), backward = layer.backward.Median();
    const Work ahead = ForwardWork(net, i), back = BackwardWork(net, i);
    std::vector<std::string> row = {
        Cell(Rate(ahead.flops, forward)),     Cell(Rate(back.flops, backward)),
        Cell(Rate(ahead.bytes, forward)),     Cell(Rate(back.bytes, backward)),
        PeakCell(ahead, forward, times.peak), PeakCell(back, backward, times.peak)};
    if (std::ranges::all_of(row, &std::string::empty)) continue;
    row.insert(row.begin(), net.LayerAt(i).name());
    if (counts) {
      row.push_back(Count(layer.forward_operations));
      row.push_back(Count(layer.backward_operations));
    }
    table.Add(std::move(row));
  }
  return table.ToString();
}

// Each implementation, and below it the layers that have it, in the net's order.
std::string ImplementationLines(const Net& net) {
  std::vector<std::pair<std::string, std::string>> layers_by_name;
  for (int i = 0; i < net.NumLayers(); ++i) {
    const std::string name = net.GetLayer(i).Implementation();
    if (name.empty() || net.FusedInto(i) >= 0) continue;
    const auto found =
        std::ranges::find(layers_by_name, name, &decltype(layers_by_name)::value_type::first);
    if (found == layers_by_name.end()) {
      layers_by_name.emplace_back(name, net.LayerAt(i).name());
    } else {
      found->second += " " + net.LayerAt(i).name();
    }
  }
  std::string text;
  for (const auto& [name, layers] : layers_by_name) {
    text += Join(Wrap(name, 0), "\n    ", Wrap(layers, 4, 4), "\n");
  }
  return text;
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
  const PeakShare share = OfPeak(work, ms, peak);
  const bool known = share.kind == PeakShare::Kind::kPercent;
  return SamplesToJson(samples)
      .Set("flops", work.flops)
      .Set("bytes", work.bytes)
      .Set("gflops_per_s", Optional(Rate(work.flops, ms)))
      .Set("gbytes_per_s", Optional(Rate(work.bytes, ms)))
      .Set("percent_of_peak", known ? Json(share.percent) : Json())
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
  return text.empty() ? "" : Join("\nImplementations that were not chosen, and why:\n", text);
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
  return Join(TimeTable(net, times), "\n", TotalTable(times), "\nTimes in milliseconds.\n\n",
              RateTable(net, times), kAboutRates,
              "Peak of this machine: ", Fixed(times.peak.gflops, 1), " GFLOP/s, ",
              Fixed(times.peak.gbytes, 1), " GB/s.\n", update, LeastTimeText(net, times),
              OperationsText(times), "\n", ImplementationLines(net), kAboutImplementations,
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
