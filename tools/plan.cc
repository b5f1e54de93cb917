#include <algorithm>
#include <iostream>
#include <map>

#include "device_flags.h"
#include "memory_limit.h"
#include "plan_gpu.h"
#include "plan_parts.h"
#include "plan_ranks.h"
#include "plan_stages.h"
#include "rank_flags.h"
#include "shared_flags.h"
#include "table.h"
#include "trainer/base/json.h"
#include "trainer/base/text.h"
#include "trainer/net/net.h"
#include "trainer/steps/part_sums.h"
#include "trainer/steps/step_rule.h"
#include "verb.h"

namespace trainer {
namespace {

// "conv1" for a forward step, "conv1 back" for a backward one.
std::string StepName(const Net& net, int step) {
  const int layers = net.NumLayers();
  if (step < layers) return net.LayerAt(step).name();
  const int backward = 2 * layers - 1 - step;
  return backward < 0 ? "the end" : net.LayerAt(backward).name() + " back";
}

const char* NameOf(BlockKind kind) {
  switch (kind) {
    case BlockKind::kGradient:
      return "gradients";
    case BlockKind::kWorkspace:
      return "workspace";
    case BlockKind::kConstants:
      return "constants";
    case BlockKind::kState:
      return "state";
    case BlockKind::kStaging:
      return "staging";
    case BlockKind::kScratch:
      return "scratch";
    default:
      return "values";
  }
}

// The step in which the most bytes are in use, and by which blocks, the largest first.
struct Peak {
  int step = 0;
  size_t bytes = 0;
  std::vector<const PlannedBlock*> holders;
};

Peak PeakOf(const MemoryPlan& plan) {
  std::map<int, int64_t> changes;
  for (const PlannedBlock& block : plan.blocks) {
    changes[block.first] += static_cast<int64_t>(block.bytes);
    changes[block.last + 1] -= static_cast<int64_t>(block.bytes);
  }
  Peak peak;
  int64_t bytes = 0;
  for (const auto& [step, change] : changes) {
    bytes += change;
    if (bytes <= static_cast<int64_t>(peak.bytes)) continue;
    peak.bytes = static_cast<size_t>(bytes);
    peak.step = step;
  }
  for (const PlannedBlock& block : plan.blocks) {
    if (block.first <= peak.step && peak.step <= block.last) peak.holders.push_back(&block);
  }
  std::ranges::stable_sort(peak.holders, std::ranges::greater(), &PlannedBlock::bytes);
  return peak;
}

std::map<std::string, size_t> BytesByKind(const Peak& peak) {
  std::map<std::string, size_t> bytes;
  for (const PlannedBlock* block : peak.holders) bytes[NameOf(block->kind)] += block->bytes;
  return bytes;
}

void PrintPeak(const Net& net) {
  constexpr size_t kShown = 10;
  const Peak peak = PeakOf(net.memory_plan());
  std::cout << "peak: " << Bytes(peak.bytes) << " in use at " << StepName(net, peak.step) << ", by";
  const char* comma = " ";
  for (const auto& [kind, bytes] : BytesByKind(peak)) {
    std::cout << comma << kind << " " << Bytes(bytes);
    comma = ", ";
  }
  std::cout << "\n\n";
  Table table({"held at the peak", "bytes", "shape", "until"});
  for (size_t i = 0; i < std::min(kShown, peak.holders.size()); ++i) {
    const PlannedBlock& block = *peak.holders[i];
    table.Add({block.name, Join(block.bytes), block.shape.Rank() == 0 ? "" : block.shape.ToString(),
               StepName(net, block.last)});
  }
  std::cout << table.ToString() << "\n";
}

void PrintNet(const std::string& title, const Net& net) {
  const MemoryPlan& plan = net.memory_plan();
  std::cout << title << ": " << net.name() << ", " << net.NumLayers() << " layers\n\n";
  Table table({"offset", "bytes", "value", "shape", "from", "to", "note"});
  for (const PlannedBlock& block : plan.blocks) {
    table.Add({Join(block.offset), Join(block.bytes), block.name,
               block.shape.Rank() == 0 ? "" : block.shape.ToString(), StepName(net, block.first),
               StepName(net, block.last), block.note});
  }
  std::cout << table.ToString() << "\n";
  PrintPeak(net);
  std::cout << "values and scratch: " << Bytes(plan.arena_bytes) << " (" << plan.arena_bytes
            << " bytes), " << Bytes(plan.separate_bytes) << " without sharing\n\n";
}

Json BlockJson(const Net& net, const PlannedBlock& block) {
  Json shape = Json::Array();
  for (const int64_t length : block.shape.dims()) shape.Push(length);
  return Json::Object()
      .Set("name", block.name)
      .Set("kind", NameOf(block.kind))
      .Set("shape", shape)
      .Set("bytes", block.bytes)
      .Set("offset", block.offset)
      .Set("from", StepName(net, block.first))
      .Set("to", StepName(net, block.last))
      .Set("note", block.note);
}

Json NetJson(const std::string& title, const Net& net) {
  const MemoryPlan& plan = net.memory_plan();
  const Peak peak = PeakOf(plan);
  Json blocks = Json::Array(), holders = Json::Array(), kinds = Json::Object();
  for (const PlannedBlock& block : plan.blocks) blocks.Push(BlockJson(net, block));
  for (const PlannedBlock* block : peak.holders) holders.Push(block->name);
  for (const auto& [kind, bytes] : BytesByKind(peak)) kinds.Set(kind, bytes);
  return Json::Object()
      .Set("net", title)
      .Set("name", net.name())
      .Set("arena_bytes", plan.arena_bytes)
      .Set("separate_bytes", plan.separate_bytes)
      .Set("peak", Json::Object()
                       .Set("step", StepName(net, peak.step))
                       .Set("bytes", peak.bytes)
                       .Set("by_kind", kinds)
                       .Set("holders", holders))
      .Set("blocks", blocks);
}

// Prints each net at once, or gathers all for one document.
class Report {
 public:
  Report(bool json, const PlanTarget& target) : json_(json), target_(target) {}

  void Add(const std::string& title, const Net& net) {
    of_nets_.AddNet(net);
    if (batch_ == 0) batch_ = BatchOf(net);
    json_ ? static_cast<void>(nets_.Push(NetJson(title, net))) : PrintNet(title, net);
  }

  // Returns the exit code. Fills what the nets take into `totals`.
  int Finish(PlannedTotals totals) {
    totals.values = of_nets_.values;
    totals.staged = of_nets_.staged;
    totals.ahead = of_nets_.ahead;
    const std::vector<PlannedPart> parts = PartsOf(totals, target_);
    const Verdict verdict = Judge(target_, parts, batch_);
    json_ ? PrintJson(parts, verdict) : PrintText(parts, verdict);
    return verdict.fits ? 0 : static_cast<int>(ErrorCode::kResource);
  }

 private:
  void PrintText(const std::vector<PlannedPart>& parts, const Verdict& verdict) const {
    std::cout << TotalsText(parts);
    if (target_.estimated) {
      std::cout
          << "\n"
          << Wrap(
                 "No GPU was asked: the scratch of convolutions in cuDNN, part of the values, "
                 "is an estimate, too.",
                 0)
          << "\n";
    }
    if (!verdict.text.empty()) std::cout << "\n" << Wrap(verdict.text, 0) << "\n";
  }
  void PrintJson(const std::vector<PlannedPart>& parts, const Verdict& verdict) {
    Json json = Json::Object().Set("nets", std::move(nets_)).Set("bytes", TotalsJson(parts));
    if (target_.gpu) json.Set("estimated", target_.estimated);
    if (!verdict.text.empty()) json.Set("fit", verdict.json);
    std::cout << json.ToString();
  }

  bool json_;
  const PlanTarget& target_;
  Json nets_ = Json::Array();
  PlannedTotals of_nets_;
  int64_t batch_ = 0;
};

class Plan final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .summary = "show a net's memory, or how fast several ranks would train it",
        .usage = "trainer plan (--solver=FILE | --model=FILE [--phase=TEST]) [flags]",
        .text =
            "Prints one line per value: its offset, its bytes, and the first and the last step "
            "that needs it ('conv1 back' is conv1's backward step). Values whose steps do not "
            "overlap share memory. Then the step in which the most is in use, and what holds it; "
            "`recompute: true` in the net, or in a layer, trades some of it for time. The "
            "databases that the net names must be there.\n"
            "Then whether a run fits into what this process may take, and which batch would; where "
            "it does not, the exit code is 81, and 'trainer train' refuses it alike. --limit names "
            "the memory of another machine.\n"
            "--memory=8GiB plans as 'trainer train --memory' does it: outputs marked 'again' are "
            "computed a second time in backward so that the run fits.\n"
            "--gpu plans for a GPU, also on a machine that has none. With its memory, or the "
            "number "
            "of a GPU that is there, it says whether the run fits and which batch would; the exit "
            "code is 81 where it does not.\n"
            "--ranks predicts instead the time of an iteration on so many ranks, and what limits "
            "it: one rank's work is measured here, given or estimated (--compute); the exchange "
            "of gradients is played event by event over --link, and drawn for the last number.\n"
            "With --strategy=pipeline it shows instead what each of so many stages holds.",
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
             MemoryLimitFlag()}),
    };
  }

  int Run(const Flags& flags) override {
    if (flags.Has("solver") == flags.Has("model")) {
      throw Error(ErrorCode::kUsage, "'trainer plan' needs either --solver=FILE or --model=FILE");
    }
    if (IsPipeline(flags)) return PlanStages(flags);
    if (flags.Has("model") && MemoryLimit(flags, *MakeDevice())) {
      throw Error(ErrorCode::kUsage, "--memory is for a run: give --solver");
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
    ParamStore params(*target.device);
    NetOptions options = Options(flags, spec.train.state);
    options.training = true;
    options.most_value_bytes = MostValueBytes(flags, spec, *target.device);
    const std::unique_ptr<StepRule> rule = MakeStepRule(spec);
    rule->Adapt(options);
    Report report(flags.Switch("json"), target);
    const Net train(*spec.train.net, options, *target.device, params);
    report.Add("training net", train);
    options.training = false;
    options.most_value_bytes = 0;
    for (size_t i = 0; i < spec.tests.size(); ++i) {
      options.state = spec.tests[i].state;
      report.Add(Join("test net (#", i, ")"),
                 Net(*spec.tests[i].net, options, *target.device, params));
    }
    PlannedTotals totals = {.weights = params.PlannedBytes(), .gradients = GradientBytes(train)};
    totals.states_per_weight = rule->StatesPerWeight();
    totals.saved_per_weight = SavedPerWeight(spec.proto, totals.states_per_weight);
    totals.SetParts(train, spec.proto);
    return report.Finish(totals);
  }

  static int PlanModel(const Flags& flags, const PlanTarget& target) {
    const NetSpec spec = ModelOf(flags);
    const bool train = PhaseOf(flags) == caffe::TRAIN;
    ParamStore params(*target.device);
    const NetOptions options =
        Options(flags, NetStateOf(flags, train ? caffe::TRAIN : caffe::TEST));
    Report report(flags.Switch("json"), target);
    const Net net(spec, options, *target.device, params);
    report.Add(train ? "net, phase TRAIN" : "net, phase TEST", net);
    return report.Finish(
        {.weights = params.PlannedBytes(), .gradients = train ? GradientBytes(net) : 0});
  }
};

const RegisterVerb<Plan> kPlan("plan");

}  // namespace
}  // namespace trainer
