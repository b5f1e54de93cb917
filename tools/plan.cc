#include <iostream>

#include "device_flags.h"
#include "memory_limit.h"
#include "net_plan.h"
#include "plan_gpu.h"
#include "plan_parts.h"
#include "plan_ranks.h"
#include "plan_stages.h"
#include "rank_flags.h"
#include "shared_flags.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/net/net.h"
#include "trainer/steps/part_sums.h"
#include "verb.h"

namespace trainer {
namespace {

// Collects what is printed about the planned nets.
class Report {
 public:
  Report(const Flags& flags, const PlanTarget& target)
      : json_(flags.Switch("json")), verbose_(flags.Switch("verbose")), target_(target) {}

  void Add(const std::string& title, const Net& net) {
    if (batch_ == 0) batch_ = BatchOf(net);
    if (json_) {
      nets_.Push(NetJson(title, net));
    } else if (verbose_) {
      PrintNet(title, net);
    } else {
      peaks_ += PeakLine(title, net);
    }
  }

  // Returns the exit code.
  int Finish(const PlannedTotals& totals) {
    const std::vector<PlannedPart> parts = PartsOf(totals, target_);
    const Verdict verdict = Judge(target_, parts, batch_);
    json_ ? PrintJson(parts, verdict) : PrintText(parts, verdict);
    return verdict.fits ? 0 : static_cast<int>(ErrorCode::kResource);
  }

 private:
  void PrintText(const std::vector<PlannedPart>& parts, const Verdict& verdict) const {
    std::cout << Wrap(verdict.text, 4) << "\n" << TotalsText(parts) << peaks_;
    if (target_.estimated) {
      std::cout << Wrap(
                       "No GPU was used, so the scratch memory of cuDNN's convolutions (part of "
                       "the values) is an estimate.",
                       4)
                << "\n";
    }
  }
  void PrintJson(const std::vector<PlannedPart>& parts, const Verdict& verdict) {
    Json json = Json::Object().Set("nets", std::move(nets_)).Set("bytes", TotalsJson(parts));
    if (target_.gpu) json.Set("estimated", target_.estimated);
    if (target_.room > 0) json.Set("fit", verdict.json);
    std::cout << json.ToString();
  }

  bool json_, verbose_;
  const PlanTarget& target_;
  Json nets_ = Json::Array();
  std::string peaks_;  // a line for each net
  int64_t batch_ = 0;
};

class Plan final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kLook,
        .summary = "show a net's memory, or how fast several ranks would train it",
        .usage = "trainer plan (--solver=FILE | --model=FILE [--phase=TEST]) [flags]",
        .text =
            "Prints whether the run fits into the memory that this process may use, and which "
            "batch would fit. If the run does not fit, the exit code is 81, and 'trainer train' "
            "refuses the run as well. --limit sets the memory of another machine.\n"
            "Then prints the memory of the run by kind, and for each net the step with the most "
            "memory in use ('conv1 back' is the backward step of conv1) and the values that use "
            "it. `recompute: true` in the net or in a layer saves memory but needs more time. "
            "--verbose also prints one line per value: its offset, its bytes, and the first and "
            "the last step that needs it. Values whose steps do not overlap share memory. The "
            "net's databases must exist.\n"
            "--memory=8GiB plans as 'trainer train --memory' does: outputs marked 'again' are "
            "computed a second time in the backward pass so that the run fits.\n"
            "--gpu plans for a GPU; this machine needs no GPU. With a memory size, or the number "
            "of a GPU of this machine, it prints whether the run fits and which batch would fit; "
            "if the run does not fit, the exit code is 81.\n"
            "--ranks predicts the time of an iteration on that many ranks, and what limits it. "
            "The work of one rank is measured here, given or estimated (--compute). The exchange "
            "of gradients over --link is simulated event by event, and drawn for the last number "
            "of ranks.\n"
            "With --strategy=pipeline, --ranks shows the memory of each stage.",
        .examples =
            "trainer plan --solver=models/lenet/solver.prototxt\n"
            "trainer plan --model=models/lenet/train_test.prototxt --phase=TEST\n"
            "trainer plan --solver=s.prototxt --gpu=16GiB\n"
            "trainer plan --solver=s.prototxt --ranks=2,4,8,16 --link=25GbE\n"
            "trainer plan --solver=s.prototxt --ranks=4 --link=link.json\n"
            "trainer plan --solver=s.prototxt --ranks=4 --strategy=pipeline --stages=auto",
        .flags = WithPlanRanksFlags(
            {{.name = "solver", .value = "FILE", .help = "plan all nets of this solver"},
             {.name = "model", .value = "FILE", .help = "plan this net"},
             PhaseFlag(),
             LevelFlag(),
             StageFlag(),
             SetFlag(),
             PlanGpuFlag(),
             PlanLimitFlag(),
             StrategyFlag(),
             StagesFlag(),
             JsonFlag(),
             {.name = "verbose",
              .kind = FlagKind::kSwitch,
              .help = "list every value of the nets with offset, bytes, first and last step"},
             MemoryLimitFlag()}),
    };
  }

  int Run(const Flags& flags) override {
    const WarningsOnly warnings_only;
    if (flags.Has("solver") == flags.Has("model")) {
      throw Error(ErrorCode::kUsage, "'trainer plan' needs either --solver=FILE or --model=FILE");
    }
    if (IsPipeline(flags)) return PlanStages(flags);
    if (flags.Has("model") && MemoryLimit(flags, *MakeDevice())) {
      throw Error(ErrorCode::kUsage, "--memory limits a run: give --solver");
    }
    if (flags.Has("ranks")) return PlanRanks(flags);
    PlanTarget target = TargetOf(flags);
    if (const auto limit = MemoryLimit(flags, *target.device)) {
      target.room = *limit;
      target.room_name = Join("--memory=", flags.Text("memory"));
    }
    return flags.Has("solver") ? PlanSolver(flags, target) : PlanModel(flags, target);
  }

 private:
  static NetOptions Options(const Flags& flags, const caffe::NetState& state) {
    NetOptions options;
    options.state = state;
    options.training = state.phase() == caffe::TRAIN;
    options.memory = ParseMemoryMode(flags);
    options.log = false;
    options.plan_only = true;
    return options;
  }

  static int PlanSolver(const Flags& flags, const PlanTarget& target) {
    const SolverSpec spec = SolverOf(flags);
    PlanRunOptions options;
    options.most_value_bytes = MostValueBytes(flags, spec, *target.device);
    options.memory = ParseMemoryMode(flags);
    Report report(flags, target);
    options.see = [&](const std::string& title, const Net& net) { report.Add(title, net); };
    return report.Finish(PlanRun(spec, *target.device, options).totals);
  }

  static int PlanModel(const Flags& flags, const PlanTarget& target) {
    const NetSpec spec = ModelOf(flags);
    const bool train = PhaseOf(flags) == caffe::TRAIN;
    ParamStore params(*target.device);
    const NetOptions options =
        Options(flags, NetStateOf(flags, train ? caffe::TRAIN : caffe::TEST));
    Report report(flags, target);
    const Net net(spec, options, *target.device, params);
    report.Add(train ? "net, phase TRAIN" : "net, phase TEST", net);
    PlannedTotals totals;
    totals.AddNet(net);
    totals.weights = params.PlannedBytes();
    if (train) totals.gradients = GradientBytes(net);
    return report.Finish(totals);
  }
};

const RegisterVerb<Plan> kPlan("plan");

}  // namespace
}  // namespace trainer
