#include <iostream>

#include "shared_flags.h"
#include "table.h"
#include "trainer/backend/device.h"
#include "trainer/base/text.h"
#include "trainer/net/net.h"
#include "trainer/rules/rule.h"
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

void PrintNet(const std::string& title, const Net& net) {
  const MemoryPlan& plan = net.memory_plan();
  std::cout << title << ": " << net.name() << ", " << net.NumLayers() << " layers\n\n";
  Table table({"offset", "bytes", "value", "shape", "from", "to", "note"});
  for (const PlannedBlock& block : plan.blocks) {
    table.Add({Join(block.offset), Join(block.bytes), block.name,
               block.shape.Rank() == 0 ? "" : block.shape.ToString(), StepName(net, block.first),
               StepName(net, block.last), block.note});
  }
  std::cout << table.ToString() << "\n"
            << "values and scratch: " << Bytes(plan.arena_bytes) << " (" << plan.arena_bytes
            << " bytes), " << Bytes(plan.separate_bytes) << " without sharing\n\n";
}

// One number per kind of memory that all nets of a run share.
void PrintTotals(const ParamStore& params, size_t arenas, int states_per_weight) {
  const size_t weights = params.WeightBytes();
  const size_t gradients = params.Gradients().size_bytes();
  const size_t state = weights * static_cast<size_t>(states_per_weight);
  Table table({"memory", "bytes", "that is"});
  auto add = [&](const char* name, size_t bytes) { table.Add({name, Join(bytes), Bytes(bytes)}); };
  add("parameters", weights);
  add("gradients", gradients);
  add("rule state", state);
  add("values of all nets", arenas);
  add("together", weights + gradients + state + arenas);
  std::cout << table.ToString();
}

class Plan final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .summary = "show where each value of a net lies in memory, without training",
        .usage = "trainer plan (--solver=FILE | --model=FILE [--phase=TEST]) [flags]",
        .text =
            "Prints one line per value: its place, its bytes, and the first and the last step "
            "that needs it ('conv1 back' is conv1's backward step). Values whose steps do not "
            "overlap share memory. The databases that the net names must be there.",
        .examples =
            "trainer plan --solver=models/lenet/solver.prototxt\n"
            "trainer plan --model=models/lenet/train_test.prototxt --phase=TEST",
        .flags = {{.name = "solver", .value = "FILE", .help = "plan all nets of this solver"},
                  {.name = "model", .value = "FILE", .help = "plan this net"},
                  PhaseFlag(),
                  LevelFlag(),
                  StageFlag(),
                  SetFlag(),
                  MemoryFlag()},
    };
  }

  int Run(const Flags& flags) override {
    if (flags.Has("solver") == flags.Has("model")) {
      throw Error(ErrorCode::kUsage, "'trainer plan' needs either --solver=FILE or --model=FILE");
    }
    const std::unique_ptr<Device> device = MakeCpuDevice();
    if (flags.Has("solver")) {
      PlanSolver(flags, *device);
    } else {
      PlanModel(flags, *device);
    }
    return 0;
  }

 private:
  static NetOptions Options(const Flags& flags, const caffe::NetState& state) {
    NetOptions options;
    options.state = state;
    options.training = state.phase() == caffe::TRAIN;
    options.memory = ParseMemoryMode(flags);
    options.log = false;
    return options;
  }

  static void PlanSolver(const Flags& flags, const Device& device) {
    const SolverSpec spec = SolverOf(flags);
    ParamStore params(device);
    NetOptions options = Options(flags, spec.train.state);
    options.training = true;
    const Net train(*spec.train.net, options, device, params);
    PrintNet("training net", train);
    size_t arenas = train.memory_plan().arena_bytes;
    options.training = false;
    for (size_t i = 0; i < spec.tests.size(); ++i) {
      options.state = spec.tests[i].state;
      const Net test(*spec.tests[i].net, options, device, params);
      PrintNet(Join("test net (#", i, ")"), test);
      arenas += test.memory_plan().arena_bytes;
    }
    PrintTotals(params, arenas, MakeRule(spec)->StatesPerWeight());
  }

  static void PlanModel(const Flags& flags, const Device& device) {
    const NetSpec spec = ModelOf(flags);
    const bool train = flags.Text("phase") == "TRAIN";
    ParamStore params(device);
    const NetOptions options =
        Options(flags, NetStateOf(flags, train ? caffe::TRAIN : caffe::TEST));
    const Net net(spec, options, device, params);
    PrintNet(train ? "net, phase TRAIN" : "net, phase TEST", net);
    PrintTotals(params, net.memory_plan().arena_bytes, 0);
  }
};

const RegisterVerb<Plan> kPlan("plan");

}  // namespace
}  // namespace trainer
