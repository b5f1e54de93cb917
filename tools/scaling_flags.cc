#include "scaling_flags.h"

#include <optional>

#include "trainer/base/error/error.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Sets the GPU or the milliseconds that --compute gives, or neither if it is empty. Throws kUsage
// for any other text.
void SetCompute(const std::string& compute, ScalingRequest* request) {
  request->gpu = FindGpu(compute);
  if (request->gpu != nullptr || compute.empty()) return;
  request->compute_ms = ParseNumber<double>(compute);
  if (request->compute_ms && *request->compute_ms > 0) return;
  throw Error(ErrorCode::kUsage,
              Join("--compute=", EscapeControl(compute),
                   ": give the milliseconds of an iteration, or one of ", GpuNames()));
}

// Returns the percentage of --jitter as a fraction.
double ParseJitter(const std::string& text) {
  const std::optional<double> percent = ParseNumber<double>(text);
  if (percent && *percent >= 0 && *percent <= 100) return *percent / 100;
  throw Error(ErrorCode::kUsage,
              Join("--jitter=", EscapeControl(text), ": give a percentage between 0 and 100"));
}

}  // namespace

void DeclareScaling(FlagSet& flags, ScalingFlags* scaling) {
  flags.Bind(&scaling->ranks, "ranks", "LIST",
             "predict the speed with this many ranks, for each number of a list: 2,4,8");
  flags.Bind(&scaling->link, "link", "NAME|FILE",
             "the network between the machines: 1GbE, 10GbE, 25GbE, 100GbE, HDR, NDR, NVLink3, "
             "NVLink4, or a file of 'bench-comm --json'");
  flags.Bind(&scaling->ranks_per_node, "ranks_per_node", "N", "ranks on each machine")
      .Range(1, 1024);
  flags.Bind(&scaling->compute, "compute", "MS|GPU",
             "time of an iteration of one rank in ms, or V100, A100, H100, H200 for an estimate; "
             "default: measured on this machine");
  flags.Bind(&scaling->iterations, "iterations", "N", "how many iterations to measure").Range(1);
  flags.Bind(&scaling->jitter, "jitter", "PERCENT",
             "standard deviation of a rank's time, in percent of it; all ranks wait for the "
             "slowest. Default: as measured on this machine, or 0 if nothing is measured");
  flags
      .Bind(&scaling->bucket_size, "bucket_size", "KIB",
            "KiB of gradients that ranks sum at once; 0: chosen as in 'trainer train'")
      .Range(0, 1 << 20);
}

std::vector<int> ParseRankCounts(const std::string& list) {
  constexpr double kMost = 65536;
  std::vector<int> ranks;
  for (const std::string& text : SplitList(list)) {
    const std::optional<double> value = ParseNumber<double>(text);
    if (!value || *value < 1 || *value > kMost || *value != static_cast<int>(*value)) {
      throw Error(ErrorCode::kUsage, Join("--ranks: '", text,
                                          "' is not a number of ranks between 1 and 65536; give a "
                                          "list such as 2,4,8"));
    }
    ranks.push_back(static_cast<int>(*value));
  }
  return ranks;
}

ScalingRequest MakeScalingRequest(const ScalingFlags& scaling) {
  ScalingRequest request;
  request.ranks = ParseRankCounts(scaling.ranks);
  request.cluster = FindCluster(scaling.link);
  request.cluster.ranks_per_machine = scaling.ranks_per_node;
  request.bucket_bytes = static_cast<size_t>(scaling.bucket_size) * 1024;
  request.iterations = scaling.iterations;
  if (!scaling.jitter.empty()) request.jitter = ParseJitter(scaling.jitter);
  SetCompute(scaling.compute, &request);
  return request;
}

}  // namespace trainer
