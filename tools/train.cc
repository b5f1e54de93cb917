#include <glog/logging.h>
#include <google/protobuf/text_format.h>

#include "device_flags.h"
#include "rank_flags.h"
#include "run_start.h"
#include "shared_flags.h"
#include "trainer/base/atomic_file.h"
#include "trainer/base/text.h"
#include "trainer/base/threads.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/checkpoint/snapshot_lock.h"
#include "trainer/config/resolved.h"
#include "trainer/parallel/agreement.h"
#include "trainer/parallel/launch.h"
#include "trainer/solver/solver.h"
#include "verb.h"

namespace trainer {
namespace {

Flag EffectFlag(std::string_view name, std::string_view fallback, std::string_view help) {
  return {.name = name, .value = "EFFECT", .fallback = fallback, .help = help};
}

SignalEffects ReadEffects(const Flags& flags) {
  auto read = [&](const char* flag) { return ParseSignalEffect(flag, flags.Text(flag)); };
  return {read("sigint_effect"), read("sighup_effect"), read("sigterm_effect"),
          read("sigusr1_effect"), flags.Whole("stop_exit_code")};
}

// Null for a run, or a replica, that writes no snapshots.
std::unique_ptr<SnapshotLock> LockSnapshots(const Flags& flags, const SolverSpec& spec,
                                            const Replica& replica) {
  if (!SavesSnapshots(spec.proto) || replica.rank != 0) return nullptr;
  LockTimes times;
  times.wait = std::chrono::seconds(flags.Whole("lock_wait"));
  return std::make_unique<SnapshotLock>(spec.proto.snapshot_prefix(), times);
}

void WarnOfOlderSnapshots(const SolverSpec& spec) {
  const std::string& prefix = spec.proto.snapshot_prefix();
  const std::vector<SnapshotNames> older = FindSnapshots(prefix);
  if (older.empty()) return;
  LOG(WARNING) << EscapeControl(
      Join("'", prefix, "' has snapshots of another run, up to iteration ", older.front().iter,
           ": this run starts from the beginning and replaces those of the same iterations "
           "(--resume=auto would go on from the newest)"));
}

// What the changes of --set made of the files, beside the snapshots.
void WriteResolved(const SolverSpec& spec) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(ResolvedSolver(spec), &text);
  const std::string path = spec.proto.snapshot_prefix() + "_resolved.prototxt";
  WriteWhole(path, text);
  LOG(INFO) << EscapeControl(Join("Wrote solver and nets with the changes of --set to ", path));
}

class Train final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .summary = "train a net, or go on from a snapshot",
        .usage = "trainer train --solver=FILE [--snapshot=FILE | --resume=auto] [flags]",
        .text =
            "Paths in the solver and its nets count from the working folder first, then from "
            "the file that names them. The folder of snapshot_prefix must exist.\n"
            "With --set, the solver and nets in force are written beside the snapshots, as "
            "<snapshot_prefix>_resolved.prototxt.\n"
            "A signal's EFFECT is stop (finish the iteration, save a snapshot, end), snapshot "
            "(save one and go on) or none. A second SIGINT or SIGTERM ends the program at "
            "once, and so does the first before the first iteration.\n"
            "While it runs, .<name>.lock beside the snapshots keeps other runs of the same "
            "snapshot_prefix away; that of a dead run is taken over. A snapshot on the way that "
            "cannot be written is a warning, and the next one tries again.\n"
            "Ranks are processes that train one model, each on its share of every batch. "
            "--ranks=N starts them on this machine; mpirun and srun --mpi=pmix on any. "
            "batch_size counts for each rank, as in Caffe, so that N ranks see N times the "
            "records; with --global_batch for all together. A rank that fails ends all.\n"
            "--gpu=0,1 and --gpu=all start a rank for each GPU. Ranks that were started "
            "otherwise take the GPU that has their number on their machine, or the only one "
            "that they see.",
        .examples =
            "trainer train --solver=models/lenet/solver.prototxt\n"
            "trainer train --solver=s.prototxt --snapshot=run/net_iter_500.solverstate\n"
            "trainer train --solver=s.prototxt --resume=auto\n"
            "trainer train --solver=s.prototxt --weights=base.caffemodel\n"
            "trainer train --solver=s.prototxt --set base_lr=0.05\n"
            "trainer train --solver=s.prototxt --ranks=4 --global_batch\n"
            "mpirun -np 8 trainer train --solver=s.prototxt --scale_lr\n"
            "trainer train --solver=s.prototxt --gpu=all",
        .flags = WithRankFlags(WithDeviceFlags(
            {{.name = "solver", .value = "FILE", .help = "the solver", .required = true},
             SnapshotFlag(),
             AllowOutsideFlag(),
             ResumeFlag(),
             StartWeightsFlag(),
             EffectFlag("sigint_effect", "stop", "what Ctrl-C does"),
             EffectFlag("sighup_effect", "snapshot", "what SIGHUP does"),
             EffectFlag("sigterm_effect", "stop", "what SIGTERM does"),
             EffectFlag("sigusr1_effect", "stop", "what SIGUSR1 does"),
             {.name = "stop_exit_code",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "75",
              .help = "exit code when a signal stopped the run",
              .max = 255},
             {.name = "lock_wait",
              .kind = FlagKind::kWhole,
              .value = "SECONDS",
              .fallback = "0",
              .help = "how long to wait for another run that writes the same snapshots"},
             PhaseFlag(),
             LevelFlag(),
             StageFlag(),
             SetFlag(),
             MemoryFlag()})),
    };
  }

  int Run(const Flags& flags) override {
    RefuseTwoStarts(flags);
    if (PhaseOf(flags) == caffe::TEST) {
      throw Error(ErrorCode::kUsage,
                  "--phase=TEST: training is phase TRAIN; 'trainer test' runs a net's TEST phase");
    }
    const std::vector<int> gpus = GpusOf(flags).value_or(std::vector<int>());
    if (const int ranks = RanksToStart(flags, gpus)) return LaunchRanks(ranks);
    SignalWatch signals(ReadEffects(flags));
    World* const world = JoinRanks(flags, flags.Whole("lock_wait"));
    const int code = RunRank(flags, signals, world);
    if (world != nullptr) world->Finish();
    return code;
  }

 private:
  // The work of this process: a rank, or a run alone (null).
  static int RunRank(const Flags& flags, SignalWatch& signals, World* world) {
    SolverSpec spec = SolverOf(flags);
    const WireType wire = TakeWire(flags, &spec);
    const DeviceChoice choice = ChooseDevice(flags, spec, PlaceOf(flags, world));
    TrainOptions options;
    if (world != nullptr) options.group = &world->group();
    const Replica replica = ReplicaOf(options);
    ScaleForRanks(flags, replica, &spec);
    const std::unique_ptr<SnapshotLock> lock = LockSnapshots(flags, spec, replica);
    const std::unique_ptr<Device> device = MakeLoggedDevice(choice);
    LOG(INFO) << DescribeThreads();
    LOG(INFO) << "Initializing solver from parameters: \n" << spec.proto.DebugString();
    std::unique_ptr<ReplicaGroup> gpu_group;
    if (world != nullptr) {
      RequireEqualRanks(*world, spec, *device, choice.gpu);
      const std::string how = world->SetWire(wire);
      if (!how.empty()) LOG(INFO) << how;
      options.before_snapshot = [world] { world->ForgetResiduals(); };
      if (choice.kind == DeviceKind::kCuda) {
        const bool shared = RequireOwnGpus(flags, *world, choice);
        gpu_group = MakeGpuGroup(flags, *world, *device, wire, shared);
        options.group = gpu_group.get();
      }
    }
    if (replica.rank == 0) options.snapshot = StateToResume(flags, spec);
    if (world != nullptr) options.snapshot = TextOfRank0(world->group(), options.snapshot);
    options.allow_outside = flags.Switch("allow_outside");
    if (options.snapshot.empty()) {
      options.weights = WeightFiles(flags, spec);
      if (replica.rank == 0) WarnOfOlderSnapshots(spec);
    }
    options.memory = ParseMemoryMode(flags);
    options.signals = &signals;
    ObserverList observers;
    observers.Add(ObserverRegistry::Get().Make("log"));
    Solver solver(spec, options, *device, observers);
    if (!flags.Each("set").empty() && replica.rank == 0) WriteResolved(spec);
    if (flags.Has("resume") && solver.iter() >= spec.proto.max_iter()) {
      LOG(INFO) << "Already at iteration " << solver.iter() << " of " << spec.proto.max_iter()
                << ": nothing is left to do";
      return 0;
    }
    LOG(INFO) << "Starting Optimization";
    const SolveResult result = solver.Solve();
    LOG(INFO) << "Optimization Done.";
    const std::string sent = world == nullptr ? "" : world->DescribeSent();
    if (!sent.empty()) LOG(INFO) << "Gradients sent to other machines by this rank: " << sent;
    if (result == SolveResult::kFinished) return 0;
    const std::string signal = signals.StopSignal();
    LOG(INFO) << (signal.empty() ? "A signal to another rank" : signal)
              << " stopped the run at iteration " << solver.iter()
              << "; --snapshot=" << StateName(spec, solver.iter()) << " goes on from there";
    return flags.Whole("stop_exit_code");
  }

  static RankOnMachine PlaceOf(const Flags& flags, const World* world) {
    if (world == nullptr) return {0, 1, false};
    const World::Locals& locals = world->locals();
    return {locals.local, locals.count, flags.Switch("share_gpu")};
  }

  static std::string StateName(const SolverSpec& spec, int iter) {
    return NamesFor(spec.proto.snapshot_prefix(), iter).state;
  }
};

const RegisterVerb<Train> kTrain("train");

}  // namespace
}  // namespace trainer
