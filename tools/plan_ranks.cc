#include "plan_ranks.h"

#include <charconv>
#include <iostream>
#include <optional>

#include "shared_flags.h"
#include "trainer/analysis/scaling/scaling_report.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::optional<double> ParseNumber(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

ScalingRequest RequestOf(const Flags& flags) {
  ScalingRequest request;
  request.ranks = RanksOf(flags);
  request.cluster = FindCluster(flags.Text("link"));
  request.cluster.ranks_per_machine = flags.Whole("ranks_per_node");
  request.bucket_bytes = static_cast<size_t>(flags.Whole("bucket_size")) * 1024;
  request.iterations = flags.Whole("iterations");
  if (flags.Has("jitter")) {
    const std::optional<double> jitter = ParseNumber(flags.Text("jitter"));
    if (!jitter || !(*jitter >= 0 && *jitter <= 100)) {
      throw Error(ErrorCode::kUsage, Join("--jitter=", EscapeControl(flags.Text("jitter")),
                                          ": give a percentage between 0 and 100"));
    }
    request.jitter = *jitter / 100;
  }
  const std::string& compute = flags.Text("compute");
  request.gpu = FindGpu(compute);
  if (request.gpu == nullptr && !compute.empty()) {
    request.compute_ms = ParseNumber(compute);
    if (!request.compute_ms || !(*request.compute_ms > 0)) {
      throw Error(ErrorCode::kUsage,
                  Join("--compute=", EscapeControl(compute),
                       ": give the milliseconds of an iteration, or one of ", GpuNames()));
    }
  }
  return request;
}

}  // namespace

std::vector<int> RanksOf(const Flags& flags) {
  constexpr double kMost = 65536;
  std::vector<int> ranks;
  for (const std::string& text : flags.List("ranks")) {
    const std::optional<double> value = ParseNumber(text);
    if (!value || *value < 1 || *value > kMost || *value != static_cast<int>(*value)) {
      throw Error(ErrorCode::kUsage, Join("--ranks: '", text,
                                          "' is not a number of ranks between 1 and 65536; give a "
                                          "list such as 2,4,8"));
    }
    ranks.push_back(static_cast<int>(*value));
  }
  return ranks;
}

std::vector<Flag> WithPlanRanksFlags(std::vector<Flag> flags) {
  const std::vector<Flag> more = {
      {.name = "ranks",
       .value = "LIST",
       .help = "predict the speed with this many ranks, for each number of a list: 2,4,8"},
      {.name = "link",
       .value = "NAME|FILE",
       .fallback = "10GbE",
       .help = "the network between the machines: 1GbE, 10GbE, 25GbE, 100GbE, HDR, NDR, NVLink3, "
               "NVLink4, or a file of 'bench-comm --json'"},
      {.name = "ranks_per_node",
       .kind = FlagKind::kWhole,
       .value = "N",
       .fallback = "1",
       .help = "ranks on each machine",
       .min = 1,
       .max = 1024},
      {.name = "compute",
       .value = "MS|GPU",
       .help = "time of an iteration of one rank in ms, or V100, A100, H100, H200 for an estimate; "
               "default: measured on this machine"},
      {.name = "iterations",
       .kind = FlagKind::kWhole,
       .value = "N",
       .fallback = "10",
       .help = "how many iterations to measure",
       .min = 1},
      {.name = "jitter",
       .value = "PERCENT",
       .help = "standard deviation of a rank's time, in percent of it; all ranks wait for the "
               "slowest. Default: as measured on this machine, or 0 if nothing is measured"},
      {.name = "bucket_size",
       .kind = FlagKind::kWhole,
       .value = "KIB",
       .fallback = "0",
       .help = "KiB of gradients that ranks sum at once; 0: chosen as in 'trainer train'",
       .max = 1 << 20}};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

int PlanRanks(const Flags& flags) {
  const ScalingRequest request = RequestOf(flags);
  const ScalingReport report =
      flags.Has("solver")
          ? PredictScaling(request, SolverOf(flags))
          : PredictScaling(request, ModelOf(flags), NetStateOf(flags, caffe::TRAIN));
  std::cout << (flags.Switch("json") ? ToJson(report).ToString() : ToText(report));
  return 0;
}

}  // namespace trainer
