#include <iostream>
#include <optional>

#include "flag_groups.h"
#include "plan_target.h"
#include "run_flags.h"
#include "scaling_flags.h"
#include "trainer/analysis/memory/memory_breakdown.h"
#include "trainer/analysis/memory/stage_memory.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/log.h"
#include "trainer/cli/verb.h"
#include "trainer/config/net_state.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/run/ranks/strategy.h"
#include "trainer/run/solver_source.h"

namespace trainer {
namespace {

// Plans the memory of a net or a run without running it; with --ranks predicts the speed of several
// ranks, or compares pipelines. Returns kResource if the memory does not suffice.
class PlanVerb final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.Bind(&solver_.file, "solver", "FILE", "plan all nets of this solver");
    flags.Bind(&net_.file, "model", "FILE", "plan this net");
    DeclarePhase(flags, &phase_);
    DeclareState(flags, &net_.state);
    DeclareSet(flags, &net_.set);
    DeclarePlanTarget(flags, &target_);
    DeclareStrategy(flags, &ranks_);
    DeclareStages(flags, &ranks_);
    DeclareJson(flags, &json_);
    flags.Bind(&verbose_, "verbose", "",
               "list every value of the nets with offset, bytes, first and last step");
    DeclareMemoryLimit(flags, &memory_);
    DeclareScaling(flags, &scaling_);
  }

  int Run() override {
    const WarningsOnly warnings_only;
    solver_ = {solver_.file, net_.set, net_.state};
    if (solver_.file.empty() == net_.file.empty()) {
      throw Error(ErrorCode::kUsage, "'trainer plan' needs either --solver=FILE or --model=FILE");
    }
    if (IsPipeline()) {
      const PipelineComparison comparison = ComparePipelines();
      std::cout << (json_ ? ToJson(comparison).ToString() : ToText(comparison));
      return 0;
    }
    if (!net_.file.empty() && ParseMemoryLimit(memory_, *MakeDevice())) {
      throw Error(ErrorCode::kUsage, "--memory limits a run: give --solver");
    }
    if (!scaling_.ranks.empty()) {
      const ScalingReport report = PredictScaling();
      std::cout << (json_ ? report.json.ToString() : report.text);
      return 0;
    }
    const MemoryBreakdown breakdown = BreakDownMemory();
    std::cout << (json_ ? ToJson(breakdown).ToString() : ToText(breakdown, verbose_));
    return breakdown.fit.fits ? 0 : static_cast<int>(ErrorCode::kResource);
  }

 private:
  // Returns whether --strategy, or else the solver of --ranks, selects a pipeline.
  bool IsPipeline() const {
    if (!ranks_.strategy.empty()) return ranks_.strategy == "pipeline";
    return !scaling_.ranks.empty() && !solver_.file.empty() &&
           ReadSolver(solver_).proto.strategy() == "pipeline";
  }

  // Throws kUsage without --solver or --ranks.
  PipelineComparison ComparePipelines() const {
    if (solver_.file.empty() || scaling_.ranks.empty()) {
      throw Error(ErrorCode::kUsage,
                  "--strategy=pipeline needs the solver and the number of stages: --solver=FILE "
                  "--ranks=4");
    }
    SolverSpec spec = ReadSolver(solver_);
    spec.proto.set_strategy("pipeline");
    ApplyPipelineStages(ranks_.pipeline_stages, &spec);
    const PlanTarget target = ResolvePlanTarget(target_);
    return trainer::ComparePipelines(spec, *target.device, target.room,
                                     ParseRankCounts(scaling_.ranks));
  }

  ScalingReport PredictScaling() const {
    const ScalingRequest request = MakeScalingRequest(scaling_);
    if (!solver_.file.empty()) return trainer::PredictScaling(request, ReadSolver(solver_));
    return trainer::PredictScaling(request, LoadModel(net_),
                                   MakeNetState(caffe::TRAIN, net_.state));
  }

  MemoryBreakdown BreakDownMemory() const {
    PlanTarget target = ResolvePlanTarget(target_);
    const std::optional<size_t> limit = ParseMemoryLimit(memory_, *target.device);
    if (limit) target.room.bytes = *limit;
    if (limit) target.room.name = "--memory=" + memory_;
    const BufferReuse mode = ParseMemoryMode(memory_);
    if (!net_.file.empty()) {
      return trainer::BreakDownMemory(LoadModel(net_), MakeNetState(phase_, net_.state),
                                      *target.device, target.room, mode);
    }
    const SolverSpec spec = ReadSolver(solver_);
    const size_t budget = limit ? ActivationBudget(*limit, spec, *target.device) : 0;
    return trainer::BreakDownMemory(spec, *target.device, target.room, mode, budget);
  }

  SolverSource solver_;
  NetSource net_;  // used instead of the solver
  caffe::Phase phase_ = caffe::TRAIN;
  PlanTargetFlags target_;
  RankOptions ranks_;
  ScalingFlags scaling_;
  std::string memory_;
  bool json_ = false, verbose_ = false;
};

const RegisterVerb<PlanVerb> kPlan("plan");

}  // namespace
}  // namespace trainer
