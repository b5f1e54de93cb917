#include <iostream>
#include <utility>

#include "device_flags.h"
#include "memory_flags.h"
#include "plan_ranks.h"
#include "run_flags.h"
#include "shared_flags.h"
#include "trainer/analysis/memory/memory_breakdown.h"
#include "trainer/analysis/memory/stage_memory.h"
#include "trainer/backend/plan_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/run/ranks/strategy.h"

namespace trainer {
namespace {

constexpr char kAnyGpu[] = "any";  // --gpu alone

Flag PlanGpuFlag() {
  return {.name = "gpu",
          .value = "SIZE|ID",
          .help =
              "plan for a GPU: one with this memory, such as 16GiB, or a GPU of this machine, such "
              "as 0; without a value, this machine needs no GPU",
          .bare = kAnyGpu};
}

Flag PlanLimitFlag() {
  return {.name = "limit",
          .value = "SIZE",
          .help =
              "memory limit of a run on the CPU, such as 64GiB for another machine; none: no "
              "limit. Default: the memory that this process may use, by the machine, its control "
              "groups, the Slurm job and ulimit -v"};
}

// The device that a plan is made for, and its memory.
struct PlanTarget {
  std::unique_ptr<Device> device;
  MemoryRoom room;
};

bool IsGpuNumber(const std::string& text) {
  return text == "all" || text.find_first_not_of("0123456789,") == std::string::npos;
}

PlanTarget TargetOf(const Flags& flags) {
  if (!flags.Has("gpu")) return {MakeDevice(), ResolveHostRoom(flags.Text("limit"))};
  if (flags.Has("limit")) {
    throw Error(ErrorCode::kUsage,
                "--limit is for the CPU; give the memory of a GPU with --gpu=16GiB");
  }
  const std::string& text = flags.Text("gpu");
  if (!IsGpuNumber(text)) {
    return {MakePlanDevice(), ResolvePlannedGpuRoom(text == kAnyGpu ? "" : text)};
  }
  DeviceChoice choice;
  choice.kind = DeviceKind::kCuda;
  choice.flag = "--gpu=" + text;
  choice.gpu.id = GpuOf(flags).value_or(0);
  PlanTarget target = {MakeDevice(choice), {}};
  target.room = ResolveGpuRoom(*target.device, choice.gpu.id);
  return target;
}

// Whether --strategy, or without it the solver, says pipeline.
bool IsPipeline(const Flags& flags) {
  const std::string& name = flags.Text("strategy");
  if (!name.empty()) return name == "pipeline";
  return flags.Has("ranks") && flags.Has("solver") &&
         SolverOf(flags).proto.strategy() == "pipeline";
}

int PlanStages(const Flags& flags) {
  if (!flags.Has("solver") || !flags.Has("ranks")) {
    throw Error(
        ErrorCode::kUsage,
        "--strategy=pipeline needs the solver and the number of stages: --solver=FILE --ranks=4");
  }
  SolverSpec spec = SolverOf(flags);
  spec.proto.set_strategy("pipeline");
  ApplyPipelineStages(flags.Text("stages"), &spec);
  const PlanTarget target = TargetOf(flags);
  const PipelineComparison comparison =
      ComparePipelines(spec, *target.device, target.room, RanksOf(flags));
  std::cout << (flags.Switch("json") ? ToJson(comparison).ToString() : ToText(comparison));
  return 0;
}

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
      target.room.bytes = *limit;
      target.room.name = Join("--memory=", flags.Text("memory"));
    }
    const MemoryBreakdown breakdown = BreakDown(flags, target);
    std::cout << (flags.Switch("json") ? ToJson(breakdown).ToString()
                                       : ToText(breakdown, flags.Switch("verbose")));
    return breakdown.fit.fits ? 0 : static_cast<int>(ErrorCode::kResource);
  }

 private:
  static MemoryBreakdown BreakDown(const Flags& flags, const PlanTarget& target) {
    const MemoryMode memory = ParseMemoryMode(flags);
    if (flags.Has("model")) {
      return BreakDownMemory(ModelOf(flags), NetStateOf(flags, PhaseOf(flags)), *target.device,
                             target.room, memory);
    }
    const SolverSpec spec = SolverOf(flags);
    return BreakDownMemory(spec, *target.device, target.room, memory,
                           ActivationBudgetOf(flags, spec, *target.device));
  }
};

const RegisterVerb<Plan> kPlan("plan");

}  // namespace
}  // namespace trainer
