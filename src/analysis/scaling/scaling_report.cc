#include "trainer/analysis/scaling/scaling_report.h"

#include <utility>

#include "scaling/measured_cluster.h"
#include "scaling/rank_work.h"
#include "trainer/analysis/communication/all_reduce_results.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

ScalingReport ReportOf(const RankWork& work) { return {ToText(work), ToJson(work)}; }

}  // namespace

ScalingReport PredictScaling(const ScalingRequest& request, SolverSpec spec) {
  return ReportOf(DetermineRankWork(request, std::move(spec)));
}

ScalingReport PredictScaling(const ScalingRequest& request, const NetSpec& net,
                             const caffe::NetState& state) {
  return ReportOf(DetermineRankWork(request, net, state));
}

ClusterModel FindCluster(const std::string& link_or_file) {
  if (const KnownLink* known = FindLink(link_or_file)) {
    ClusterModel cluster;
    cluster.link = MakeLinkModel(*known);
    return cluster;
  }
  if (Exists(link_or_file)) return FitCluster(link_or_file, ReadAllReduceResults(link_or_file));
  std::vector<std::string> names;
  for (const KnownLink& link : KnownLinks()) names.push_back(link.name);
  throw Error(ErrorCode::kUsage,
              Join("--link=", EscapeControl(link_or_file),
                   " is not a file of 'trainer bench-comm --json' and not a known link.",
                   DidYouMean(link_or_file, names), " Known links are ", JoinList(names)));
}

}  // namespace trainer
