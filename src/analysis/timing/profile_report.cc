#include "trainer/analysis/timing/profile_report.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <iomanip>

#include "timing/roofline.h"
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
peak of the machine is the speed of a large matrix product (SGEMM), or of a
layer that was faster. Forward and backward of the whole net are the sums over
its layers. The time of a fused layer counts for the layer that computes it.
)";
constexpr char kAboutImplementations[] = R"(
Implementations: 'onednn ...' is a kernel of oneDNN; the end of its name is the
instruction set that it uses. cublasLt and cuDNN are libraries of NVIDIA. All
others are loops of this program. 'trainer time --v=1' says why other
implementations were not chosen.
)";

// Returns "61.0%", or "cache" or "fewer", which kAboutRates explains; "" if the share is unknown.
std::string PeakCell(const OpCost& cost, double ms, const MachinePeak& peak) {
  const RooflineFraction fraction = FractionOfPeak(cost, ms, peak);
  switch (fraction.kind) {
    case RooflineFraction::Kind::kPercent:
      return Fixed(fraction.percent, 1) + "%";
    case RooflineFraction::Kind::kCached:
      return "cache";
    case RooflineFraction::Kind::kFewerProducts:
      return "fewer";
    default:
      return "";
  }
}

std::string RateCell(const std::optional<double>& value) { return value ? Fixed(*value, 1) : ""; }
std::string CountCell(const std::optional<int>& value) { return value ? Join(*value) : ""; }

// Returns the sum of a statistic (`figure`) of one direction over all layers.
double SumOverLayers(const NetProfile& profile, TimingSamples LayerProfile::*direction,
                     double (TimingSamples::*figure)() const) {
  double sum = 0;
  for (const LayerProfile& layer : profile.layers) sum += ((layer.*direction).*figure)();
  return sum;
}

// Returns the sum of the median times of all layers in both directions.
double MedianOfLayers(const NetProfile& profile) {
  return SumOverLayers(profile, &LayerProfile::forward, &TimingSamples::Median) +
         SumOverLayers(profile, &LayerProfile::backward, &TimingSamples::Median);
}

// Returns the share of a layer in MedianOfLayers.
double PercentOfTime(const NetProfile& profile, const LayerProfile& layer) {
  const double whole = MedianOfLayers(profile);
  return whole > 0 ? 100 * (layer.forward.Median() + layer.backward.Median()) / whole : 0;
}

// Returns "An iteration computes 3.100 GFLOP and moves at least 400.0 MB, the update's included."
std::string WorkText(const NetProfile& profile) {
  const OpCost work = RooflineTimeOf(profile).cost;
  return Wrap(Join("An iteration computes ", Fixed(1e-9 * work.flops, 3),
                   " GFLOP and moves at least ", Fixed(1e-6 * work.bytes, 1), " MB, ",
                   profile.update_bytes > 0 ? "the update's included." : "without an update."),
              0) +
         "\n";
}

// Returns the sentence that ends the report; "" if the shares are unknown. The line break is fixed,
// so that the report has the same lines whatever the numbers. The printed shares sum to 100 %.
std::string SharesText(const NetProfile& profile) {
  const std::optional<StepShares> shares = StepSharesOf(profile);
  if (!shares) return "";
  const auto arithmetic = std::lround(shares->arithmetic);
  const auto both = std::lround(shares->arithmetic + shares->memory);
  return Join("\nOf ", Fixed(profile.Iteration().Median(), 3), " ms per ",
              profile.step.empty() ? "pass" : "step", ", ", arithmetic,
              " % is arithmetic at SGEMM's rate (", Fixed(profile.peak.gflops, 0), " GFLOP/s),\n",
              both - arithmetic, " % is memory traffic at ", Fixed(profile.peak.gbytes, 1),
              " GB/s, and ", 100 - both, " % is the rest.\n");
}

// Returns "... 52 kernels, copies and fills, 0.021 ms each on average ..."; "" if the device does
// not count them.
std::string OperationsText(const NetProfile& profile) {
  const std::optional<int> count = CountOperations(profile);
  if (!count || *count == 0) return "";
  return Wrap(Join("The layers of a pass start ", *count, " kernels, copies and fills, ",
                   Fixed(profile.pass.Median() / *count, 4),
                   " ms each on average. The host needs a few microseconds to start each of them, "
                   "unless the whole pass is one recorded CUDA graph."),
              0) +
         "\n";
}

// Returns a table of the times of each layer. A fused layer has none.
std::string TimeTable(const NetProfile& profile) {
  Table table({"layer", "type", "fwd min", "fwd med", "bwd min", "bwd med", "share, %"});
  for (const LayerProfile& layer : profile.layers) {
    if (layer.computed_by) {
      table.Add(
          {layer.name, Join(layer.type, " (in ", *layer.computed_by, ")"), "", "", "", "", ""});
      continue;
    }
    table.Add({layer.name, layer.type, Fixed(layer.forward.Min(), 3),
               Fixed(layer.forward.Median(), 3), Fixed(layer.backward.Min(), 3),
               Fixed(layer.backward.Median(), 3), Fixed(PercentOfTime(profile, layer), 1)});
  }
  return table.ToString();
}

// Returns a table of rates and percentages of the peak, for layers whose work is counted, and of
// the numbers of operations if the device counts them.
std::string RateTable(const NetProfile& profile) {
  const bool counts = CountOperations(profile).has_value();
  std::vector<std::string> head = {"layer", "GFLOP/s", "bwd", "GB/s", "bwd", "peak", "bwd"};
  if (counts) head.insert(head.end(), {"kernels", "bwd"});
  Table table(head);
  for (const LayerProfile& layer : profile.layers) {
    const double forward = layer.forward.Median(), backward = layer.backward.Median();
    const OpCost &ahead = layer.forward_cost, &back = layer.backward_cost;
    std::vector<std::string> row = {
        RateCell(Rate(ahead.flops, forward)),   RateCell(Rate(back.flops, backward)),
        RateCell(Rate(ahead.bytes, forward)),   RateCell(Rate(back.bytes, backward)),
        PeakCell(ahead, forward, profile.peak), PeakCell(back, backward, profile.peak)};
    if (std::ranges::all_of(row, &std::string::empty)) continue;
    row.insert(row.begin(), layer.name);
    if (counts) {
      row.push_back(CountCell(layer.forward_operations));
      row.push_back(CountCell(layer.backward_operations));
    }
    table.Add(std::move(row));
  }
  return table.ToString();
}

// Returns each implementation, and below it the layers that use it, in the net's order.
std::string ImplementationLines(const NetProfile& profile) {
  std::vector<std::pair<std::string, std::string>> layers_by_name;
  for (const LayerProfile& layer : profile.layers) {
    const std::string& name = layer.implementation;
    if (name.empty() || layer.computed_by) continue;
    const auto found =
        std::ranges::find(layers_by_name, name, &decltype(layers_by_name)::value_type::first);
    if (found == layers_by_name.end()) {
      layers_by_name.emplace_back(name, layer.name);
    } else {
      found->second += " " + layer.name;
    }
  }
  std::string text;
  for (const auto& [name, layers] : layers_by_name) {
    text += Join(Wrap(name, 0), "\n    ", Wrap(layers, 4, 4), "\n");
  }
  return text;
}

// Returns a table of the whole net. "between layers" is the time of a pass that no layer took.
std::string TotalTable(const NetProfile& profile) {
  Table table({"whole net", "min", "median"});
  const auto sum = [&](const char* name, TimingSamples LayerProfile::*direction) {
    table.Add({name, Fixed(SumOverLayers(profile, direction, &TimingSamples::Min), 3),
               Fixed(SumOverLayers(profile, direction, &TimingSamples::Median), 3)});
  };
  const auto add = [&](const char* name, const TimingSamples& samples) {
    table.Add({name, Fixed(samples.Min(), 3), Fixed(samples.Median(), 3)});
  };
  sum("forward", &LayerProfile::forward);
  sum("backward", &LayerProfile::backward);
  add("forward and backward", profile.pass);
  if (!profile.step.empty()) {
    table.Add({"update", "-", Fixed(profile.UpdateMs(), 3)});
    add("training iteration", profile.step);
  }
  table.Add({"between layers", "-",
             Fixed(std::max(0.0, profile.pass.Median() - MedianOfLayers(profile)), 3)});
  table.Add({"waiting for data", "-", Fixed(profile.wait_ms, 3)});
  return table.ToString();
}

// Returns the number, or null without a value.
Json NullableJson(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json SamplesToJson(const TimingSamples& samples) {
  return Json::Object()
      .Set("min_ms", samples.Min())
      .Set("median_ms", samples.Median())
      .Set("mean_ms", samples.Mean());
}

// Returns the times and rates of one direction of a layer.
Json DirectionToJson(const TimingSamples& samples, const OpCost& cost, const MachinePeak& peak,
                     const std::optional<int>& operations) {
  const double ms = samples.Median();
  const RooflineFraction fraction = FractionOfPeak(cost, ms, peak);
  const bool known = fraction.kind == RooflineFraction::Kind::kPercent;
  return SamplesToJson(samples)
      .Set("flops", cost.flops)
      .Set("bytes", cost.bytes)
      .Set("gflops_per_s", NullableJson(Rate(cost.flops, ms)))
      .Set("gbytes_per_s", NullableJson(Rate(cost.bytes, ms)))
      .Set("percent_of_peak", known ? Json(fraction.percent) : Json())
      .Set("operations", operations ? Json(*operations) : Json());
}

Json SharesToJson(const std::optional<StepShares>& shares) {
  if (!shares) return Json();
  return Json::Object()
      .Set("arithmetic", shares->arithmetic)
      .Set("memory", shares->memory)
      .Set("rest", shares->rest);
}

Json DeclinedToJson(const LayerProfile& layer) {
  Json lines = Json::Array();
  for (const std::string& line : layer.declined) lines.Push(line);
  return lines;
}

// Returns the implementations that were asked before the chosen ones, and why they declined; ""
// without any.
std::string DeclinedText(const NetProfile& profile) {
  std::string text;
  for (const LayerProfile& layer : profile.layers) {
    if (!layer.declined.empty()) text += Join(layer.name, "\n");
    for (const std::string& line : layer.declined) text += Join("  ", line, "\n");
  }
  return text.empty() ? "" : Join("\nImplementations that were not chosen, and why:\n", text);
}

Json LayerToJson(const NetProfile& profile, const LayerProfile& layer) {
  return Json::Object()
      .Set("name", layer.name)
      .Set("type", layer.type)
      .Set("implementation", layer.implementation)
      .Set("declined", DeclinedToJson(layer))
      .Set("computed_by", layer.computed_by ? Json(*layer.computed_by) : Json())
      .Set("percent_of_time", PercentOfTime(profile, layer))
      .Set("forward", DirectionToJson(layer.forward, layer.forward_cost, profile.peak,
                                      layer.forward_operations))
      .Set("backward", DirectionToJson(layer.backward, layer.backward_cost, profile.peak,
                                       layer.backward_operations));
}

}  // namespace

void LogProfile(const NetProfile& profile) {
  LOG(INFO) << "Average time per layer: ";
  for (const LayerProfile& layer : profile.layers) {
    const std::string& name = layer.name;
    LOG(INFO) << std::setw(10) << name << "\tforward: " << layer.forward.Mean() << " ms.";
    LOG(INFO) << std::setw(10) << name << "\tbackward: " << layer.backward.Mean() << " ms.";
  }
  const double both = profile.forward.Mean() + profile.backward.Mean();
  LOG(INFO) << "Average Forward pass: " << profile.forward.Mean() << " ms.";
  LOG(INFO) << "Average Backward pass: " << profile.backward.Mean() << " ms.";
  LOG(INFO) << "Average Forward-Backward: " << both << " ms.";
  LOG(INFO) << "Total Time: " << both * profile.iterations << " ms.";
  LOG(INFO) << "*** Benchmark ends ***";
}

std::string ToText(const NetProfile& profile, bool declined) {
  std::string update;
  if (const auto rate = Rate(static_cast<double>(profile.update_bytes), profile.UpdateMs())) {
    update =
        Join("The update moves ", Bytes(profile.update_bytes), " at ", Fixed(*rate, 1), " GB/s.\n");
  }
  return Join(TimeTable(profile), "\n", TotalTable(profile), "\nTimes in milliseconds.\n\n",
              RateTable(profile), kAboutRates,
              "Peak of this machine: ", Fixed(profile.peak.gflops, 1), " GFLOP/s, ",
              Fixed(profile.peak.gbytes, 1), " GB/s.\n", update, WorkText(profile),
              OperationsText(profile), "\n", ImplementationLines(profile), kAboutImplementations,
              declined ? DeclinedText(profile) : "", SharesText(profile));
}

Json ToJson(const NetProfile& profile) {
  Json layers = Json::Array();
  for (const LayerProfile& layer : profile.layers) layers.Push(LayerToJson(profile, layer));
  Json root = Json::Object();
  root.Set("net", profile.net)
      .Set("iterations", profile.iterations)
      .Set("peak", Json::Object()
                       .Set("gflops_per_s", profile.peak.gflops)
                       .Set("gbytes_per_s", profile.peak.gbytes))
      .Set("layers", layers)
      .Set("forward", SamplesToJson(profile.forward))
      .Set("backward", SamplesToJson(profile.backward))
      .Set("pass", SamplesToJson(profile.pass))
      .Set("wait_ms", profile.wait_ms);
  const RooflineTime least = RooflineTimeOf(profile);
  root.Set("least", Json::Object()
                        .Set("flops", least.cost.flops)
                        .Set("bytes", least.cost.bytes)
                        .Set("ms", least.Ms()));
  root.Set("percent_of_step", SharesToJson(StepSharesOf(profile)));
  if (const auto operations = CountOperations(profile)) root.Set("operations", *operations);
  if (profile.step.empty()) return root;
  const auto bytes = static_cast<double>(profile.update_bytes);
  root.Set("training_iteration", SamplesToJson(profile.step))
      .Set("update", Json::Object()
                         .Set("median_ms", profile.UpdateMs())
                         .Set("bytes", profile.update_bytes)
                         .Set("gbytes_per_s", NullableJson(Rate(bytes, profile.UpdateMs()))));
  return root;
}

}  // namespace trainer
