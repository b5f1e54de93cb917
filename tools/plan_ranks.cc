#include "plan_ranks.h"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <optional>

#include "device_flags.h"
#include "link_file.h"
#include "rank_plan.h"
#include "shared_flags.h"
#include "step_work.h"
#include "time_measure.h"
#include "trainer/backend/plan_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/scaling/measured.h"
#include "trainer/steps/step_rule.h"

namespace trainer {
namespace {

std::optional<double> ParseNumber(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Cluster ClusterOf(const Flags& flags) {
  const std::string& name = flags.Text("link");
  Cluster cluster;
  if (const KnownLink* known = FindLink(name)) {
    cluster.link = MakeLink(*known);
  } else if (Exists(name)) {
    cluster = ClusterOf(name, ReadSums(name));
  } else {
    std::vector<std::string> names;
    for (const KnownLink& link : KnownLinks()) names.push_back(link.name);
    throw Error(
        ErrorCode::kUsage,
        Join("--link=", EscapeControl(name), " is not a file of 'trainer bench-comm --json' and ",
             "not a known link.", DidYouMean(name, names), " Known links are ", JoinList(names)));
  }
  cluster.ranks_per_machine = flags.Whole("ranks_per_node");
  return cluster;
}

StepOptions OptionsOf(const Flags& flags) {
  StepOptions options;
  options.bucket_bytes = static_cast<size_t>(flags.Whole("bucket_size")) * 1024;
  if (!flags.Has("jitter")) return options;  // measured, or none
  const std::optional<double> jitter = ParseNumber(flags.Text("jitter"));
  if (!jitter || !(*jitter >= 0 && *jitter <= 100)) {
    throw Error(ErrorCode::kUsage, Join("--jitter=", EscapeControl(flags.Text("jitter")),
                                        ": give a percentage between 0 and 100"));
  }
  options.jitter = *jitter / 100;
  return options;
}

// One "RANKS:IMAGES" of --fit.
MeasuredRate RateOf(const std::string& text) {
  const size_t colon = text.find(':');
  const std::optional<double> ranks = ParseNumber(text.substr(0, colon));
  const std::optional<double> images =
      colon == std::string::npos ? std::nullopt : ParseNumber(text.substr(colon + 1));
  if (!ranks || !images || *ranks < 1 || *ranks > 65536 || !(*images > 0)) {
    throw Error(ErrorCode::kUsage, Join("--fit: '", EscapeControl(text),
                                        "' is not RANKS:IMAGES_PER_SECOND, such as 2:322.9"));
  }
  return {static_cast<int>(*ranks), *images};
}

void Fit(const Flags& flags, RankPlan* plan) {
  const std::vector<std::string> rates = flags.List("fit");
  if (rates.empty()) return;
  if (rates.size() != 2) {
    throw Error(ErrorCode::kUsage, "--fit needs two measured rates: --fit=2:322.9,4:629.0");
  }
  const FittedWork fitted =
      FitWork(plan->work, plan->cluster, plan->options, RateOf(rates[0]), RateOf(rates[1]));
  plan->work = fitted.work;
  plan->options.jitter = fitted.jitter;
  plan->source += Join("; all times and the jitter (", Fixed(100 * fitted.jitter, 2),
                       " %) fitted to ", rates[0], " and ", rates[1]);
}

// Where the work of a rank comes from: a net that is planned only, or one that runs.
class WorkSource {
 public:
  WorkSource(const Flags& flags, RankPlan* plan) : flags_(flags), plan_(plan) {
    const std::string& compute = flags.Text("compute");
    gpu_ = FindGpu(compute);
    given_ms_ = ParseNumber(compute);
    const bool sensible = compute.empty() || gpu_ != nullptr || (given_ms_ && *given_ms_ > 0);
    if (!sensible) {
      throw Error(ErrorCode::kUsage,
                  Join("--compute=", EscapeControl(compute),
                       ": give the milliseconds of an iteration, or one of ", GpuNames()));
    }
  }

  void Solver(const SolverSpec& spec) {
    passes_ = spec.proto.iter_size();
    states_ = MakeStepRule(spec)->StatesPerWeight();
    constexpr double kHalf = 2;
    if (spec.proto.exchange_type() != caffe::FLOAT) plan_->cluster.wire_bytes = kHalf;
    if (IsPlanned()) return Plan(*spec.train.net, spec.train.state);
    const int iterations = flags_.Whole("iterations");
    const SolverSpec alone = TrainingOnly(SolverOf(flags_), iterations + 1);
    const std::unique_ptr<Device> device = MakeDevice();
    TrainOptions options;
    options.saves = false;
    ObserverList nobody;
    trainer::Solver solver(alone, options, *device, nobody);
    Measure({&solver.train_net(), &solver, device.get(), true}, iterations);
  }

  void Model(const NetSpec& spec, const caffe::NetState& state) {
    if (IsPlanned()) return Plan(spec, state);
    const std::unique_ptr<Device> device = MakeDevice();
    ParamStore params(*device);
    NetOptions options = Options(state);
    Net net(spec, options, *device, params);
    Measure({&net, nullptr, device.get(), true}, flags_.Whole("iterations"));
  }

 private:
  bool IsPlanned() const { return gpu_ != nullptr || given_ms_; }

  static NetOptions Options(const caffe::NetState& state) {
    NetOptions options;
    options.state = state;
    options.training = true;
    options.log = false;
    return options;
  }

  void Measure(const Subject& subject, int iterations) {
    const Times times = MeasureTimes(subject, iterations);
    plan_->net = subject.net->name();
    plan_->work = MeasuredWork(*subject.net, times, passes_);
    plan_->source = Join("measured here, ", subject.device->Describe());
    if (flags_.Has("jitter")) return;
    const Samples& step = times.Iteration();
    plan_->options.jitter = step.ExcessOfTwo() / step.Mean() / ExpectedMax(2);
  }

  void Plan(const NetSpec& spec, const caffe::NetState& state) {
    const std::unique_ptr<Device> device = gpu_ != nullptr ? MakePlanDevice() : MakeDevice();
    ParamStore params(*device);
    NetOptions options = Options(state);
    options.plan_only = true;
    const Net net(spec, options, *device, params);
    plan_->net = net.name();
    if (gpu_ == nullptr) {
      plan_->work = GivenWork(net, *given_ms_ * 1e-3, passes_, states_);
      plan_->source = "as given";
      return;
    }
    plan_->work = EstimatedWork(net, *gpu_, passes_, states_);
    plan_->source = Join("estimated for one ", gpu_->name, " (no GPU was used)");
    const KnownLink* const inside = FindLink(std::string(gpu_->inside));
    plan_->cluster.inside = {inside->latency, inside->bytes_per_second, true};
  }

  const Flags& flags_;
  RankPlan* plan_;
  const GpuSpec* gpu_ = nullptr;
  std::optional<double> given_ms_;
  int passes_ = 1, states_ = 1;
};

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
       .max = 1 << 20},
      {.name = "fit",
       .value = "N:RATE,N:RATE",
       .help = "compute time and jitter follow from these two measured rates (ranks:images/s)"}};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

int PlanRanks(const Flags& flags) {
  RankPlan plan;
  plan.ranks = RanksOf(flags);
  plan.cluster = ClusterOf(flags);
  plan.options = OptionsOf(flags);
  WorkSource source(flags, &plan);
  if (flags.Has("solver")) {
    source.Solver(SolverOf(flags));
  } else {
    source.Model(ModelOf(flags), NetStateOf(flags, caffe::TRAIN));
  }
  if (plan.work.slices.empty()) {
    throw Error(ErrorCode::kUsage,
                "--ranks: the net has no parameters to train, so ranks have nothing to exchange");
  }
  Fit(flags, &plan);
  std::cout << (flags.Switch("json") ? RankPlanJson(plan) : RankPlanText(plan));
  return 0;
}

}  // namespace trainer
