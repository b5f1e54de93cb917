#include "scaling/rank_work.h"

#include <memory>
#include <utility>

#include "scaling/straggler_fit.h"
#include "trainer/analysis/timing/net_profile.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/meta_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/net/compile.h"
#include "trainer/optim/optimizer.h"

namespace trainer {
namespace {

// Determines the work of a rank, from a planned net or from one that runs on this machine's CPU.
// Call OfSolver or OfNet once, then Take.
class RankWorkFinder {
 public:
  explicit RankWorkFinder(const ScalingRequest& request) : request_(request) {
    work_.ranks = request.ranks;
    work_.cluster = request.cluster;
    work_.options = {.bucket_bytes = request.bucket_bytes, .jitter = request.jitter.value_or(0)};
  }

  // Reads passes, states and the type of exchanged numbers from the solver, and determines the work
  // of its training net.
  void OfSolver(SolverSpec spec) {
    passes_ = spec.proto.iter_size();
    states_per_weight_ = MakeOptimizer(spec)->StatesPerWeight();
    constexpr double kHalf = 2;
    if (spec.proto.exchange_type() != caffe::FLOAT) work_.cluster.wire_bytes = kHalf;
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

  // Returns the work. Throws kUsage if the net has nothing to train.
  RankWork Take() && {
    if (work_.profile.gradients.empty()) {
      throw Error(ErrorCode::kUsage,
                  "--ranks: the net has no parameters to train, so ranks have nothing to exchange");
    }
    return std::move(work_);
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
    work_.net = net.graph().name;
    work_.profile = MeasuredIteration(net.graph(), measured, passes_);
    work_.source = Join("measured here, ", device.Describe());
    if (request_.jitter) return;
    const TimingSamples& step = measured.Iteration();
    work_.options.jitter = step.ExcessOfTwo() / step.Mean() / ExpectedMax(2);
  }

  // Compiles the net without running it, and takes its times from compute_ms or from the GPU's data
  // sheet. A GPU's own links then connect the ranks of a machine.
  void Plan(const NetSpec& spec, const caffe::NetState& state) {
    const GpuSpec* const gpu = request_.gpu;
    const std::unique_ptr<Device> device = gpu != nullptr ? MakeMetaDevice() : MakeCpuDevice();
    ParamStore params(*device);
    const std::unique_ptr<const Graph> graph =
        Compile(spec, {.state = state, .training = true, .log = false}, *device, params);
    work_.net = graph->name;
    if (gpu == nullptr) {
      work_.profile =
          GivenIteration(*graph, *request_.compute_ms * 1e-3, passes_, states_per_weight_);
      work_.source = "as given";
      return;
    }
    work_.profile = EstimatedIteration(*graph, *gpu, passes_, states_per_weight_);
    work_.source = Join("estimated for one ", gpu->name, " (no GPU was used)");
    const KnownLink* const inside = FindLink(std::string(gpu->inside));
    work_.cluster.inside = {inside->latency, inside->bytes_per_second, true};
  }

  const ScalingRequest& request_;
  RankWork work_;
  int passes_ = 1, states_per_weight_ = 1;
};

}  // namespace

RankWork DetermineRankWork(const ScalingRequest& request, SolverSpec spec) {
  RankWorkFinder work(request);
  work.OfSolver(std::move(spec));
  return std::move(work).Take();
}

RankWork DetermineRankWork(const ScalingRequest& request, const NetSpec& net,
                           const caffe::NetState& state) {
  RankWorkFinder work(request);
  work.OfNet(net, state);
  return std::move(work).Take();
}

}  // namespace trainer
