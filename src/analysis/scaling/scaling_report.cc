#include "trainer/analysis/scaling/scaling_report.h"

#include <memory>
#include <utility>

#include "scaling/measured_cluster.h"
#include "scaling/straggler_fit.h"
#include "trainer/analysis/communication/all_reduce_results.h"
#include "trainer/analysis/timing/net_profile.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/meta_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/net/compile.h"
#include "trainer/optim/optimizer.h"

namespace trainer {
namespace {

// Determines the work of a rank, from a planned net or from one that runs on this machine's CPU.
// Call OfSolver or OfNet once, then Report.
class RankWork {
 public:
  explicit RankWork(const ScalingRequest& request) : request_(request) {
    report_.ranks = request.ranks;
    report_.cluster = request.cluster;
    report_.options = {.bucket_bytes = request.bucket_bytes, .jitter = request.jitter.value_or(0)};
  }

  // Reads passes, states and the type of exchanged numbers from the solver, and determines the work
  // of its training net.
  void OfSolver(SolverSpec spec) {
    passes_ = spec.proto.iter_size();
    states_per_weight_ = MakeOptimizer(spec)->StatesPerWeight();
    constexpr double kHalf = 2;
    if (spec.proto.exchange_type() != caffe::FLOAT) report_.cluster.wire_bytes = kHalf;
    if (IsPlanned()) return Plan(*spec.train.net, spec.train.state);
    const std::unique_ptr<Device> device = MakeCpuDevice();
    ProfileSolver(std::move(spec), *device, Measuring(*device));
  }

  // Determines the work of a net without a solver: one pass per iteration, one state per weight.
  void OfNet(const NetSpec& spec, const caffe::NetState& state) {
    if (IsPlanned()) return Plan(spec, state);
    const std::unique_ptr<Device> device = MakeCpuDevice();
    ProfileModel(spec, state, *device, Measuring(*device));
  }

  // Returns the report. Throws kUsage if the net has nothing to train.
  ScalingReport Report() && {
    if (report_.profile.gradients.empty()) {
      throw Error(ErrorCode::kUsage,
                  "--ranks: the net has no parameters to train, so ranks have nothing to exchange");
    }
    return std::move(report_);
  }

 private:
  // Returns whether the request has the times, or a GPU to estimate them for, so that nothing is
  // measured.
  bool IsPlanned() const { return request_.gpu != nullptr || request_.compute_ms; }

  // Returns options with which a measurement calls SetMeasured.
  ProfileOptions Measuring(const Device& device) {
    ProfileOptions options;
    options.iterations = request_.iterations;
    options.inspect = [&](const Net& net, const NetProfile& measured) {
      SetMeasured(net, measured, device);
    };
    return options;
  }

  // Takes the measured times. Without a given jitter, chooses the one for which the model predicts
  // the measured difference between the slower of two random iterations and the mean.
  void SetMeasured(const Net& net, const NetProfile& measured, const Device& device) {
    report_.net = net.graph().name;
    report_.profile = MeasuredIteration(net.graph(), measured, passes_);
    report_.source = Join("measured here, ", device.Describe());
    if (request_.jitter) return;
    const TimingSamples& step = measured.Iteration();
    report_.options.jitter = step.ExcessOfTwo() / step.Mean() / ExpectedMax(2);
  }

  // Compiles the net without running it, and takes its times from compute_ms or from the GPU's data
  // sheet. A GPU's own links then connect the ranks of a machine.
  void Plan(const NetSpec& spec, const caffe::NetState& state) {
    const GpuSpec* const gpu = request_.gpu;
    const std::unique_ptr<Device> device = gpu != nullptr ? MakeMetaDevice() : MakeCpuDevice();
    ParamStore params(*device);
    const std::unique_ptr<const Graph> graph =
        Compile(spec, {.state = state, .training = true, .log = false}, *device, params);
    report_.net = graph->name;
    if (gpu == nullptr) {
      report_.profile =
          GivenIteration(*graph, *request_.compute_ms * 1e-3, passes_, states_per_weight_);
      report_.source = "as given";
      return;
    }
    report_.profile = EstimatedIteration(*graph, *gpu, passes_, states_per_weight_);
    report_.source = Join("estimated for one ", gpu->name, " (no GPU was used)");
    const KnownLink* const inside = FindLink(std::string(gpu->inside));
    report_.cluster.inside = {inside->latency, inside->bytes_per_second, true};
  }

  const ScalingRequest& request_;
  ScalingReport report_;
  int passes_ = 1, states_per_weight_ = 1;
};

}  // namespace

ScalingReport PredictScaling(const ScalingRequest& request, SolverSpec spec) {
  RankWork work(request);
  work.OfSolver(std::move(spec));
  return std::move(work).Report();
}

ScalingReport PredictScaling(const ScalingRequest& request, const NetSpec& net,
                             const caffe::NetState& state) {
  RankWork work(request);
  work.OfNet(net, state);
  return std::move(work).Report();
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
