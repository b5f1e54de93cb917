#include <glog/logging.h>

#include "batch_flag.h"
#include "batch_job.h"
#include "device_flags.h"
#include "job_life.h"
#include "lints.h"
#include "memory_flags.h"
#include "rank_flags.h"
#include "reading_flags.h"
#include "rescue.h"
#include "run_start.h"
#include "shared_flags.h"
#include "stage_data.h"
#include "trainer/analysis/memory/memory_fit.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/checkpoint/snapshot_lock.h"
#include "trainer/cli/verb.h"
#include "trainer/config/resolved.h"
#include "trainer/parallel/agreement.h"
#include "trainer/parallel/launch.h"
#include "trainer/run/ranks/batch_scaling.h"
#include "trainer/run/ranks/compression.h"
#include "trainer/run/ranks/gpu_communicator.h"
#include "trainer/run/ranks/join.h"
#include "trainer/run/ranks/record_server_start.h"
#include "trainer/run/ranks/strategy.h"
#include "trainer/solver/solver.h"
#include "watching.h"

namespace trainer {
namespace {

Flag EffectFlag(std::string_view name, std::string_view fallback, std::string_view help) {
  return {.name = name, .value = "EFFECT", .fallback = fallback, .help = help};
}

std::vector<Flag> TrainFlags() {
  std::vector<Flag> flags = {
      {.name = "solver", .value = "FILE", .help = "the solver", .required = true},
      SnapshotFlag(),
      AllowOutsideFlag(),
      ResumeFlag(),
      StartWeightsFlag(),
      SetFlag(),
      BatchFlag(),
      PhaseFlag(),
      LevelFlag(),
      StageFlag()};
  AddFlags("what is kept and shown", {RunFolderFlag(), LogFlag()}, &flags);
  AddFlags("signals and time",
           {MaxWallFlag(),
            RequeueFlag(),
            RescueFlag(),
            JobCheckFlag(),
            EffectFlag("sigint_effect", "stop", "what Ctrl-C does"),
            EffectFlag("sighup_effect", "snapshot", "what SIGHUP does"),
            EffectFlag("sigterm_effect", "stop", "what SIGTERM does"),
            EffectFlag("sigusr1_effect", "stop", "what SIGUSR1 does"),
            EffectFlag("sigusr2_effect", "stop", "what SIGUSR2 does"),
            {.name = "stop_exit_code",
             .kind = FlagKind::kWhole,
             .value = "N",
             .fallback = "75",
             .help = "exit code if a signal or the time limit stops the run",
             .max = 255},
            {.name = "lock_wait",
             .kind = FlagKind::kWhole,
             .value = "SECONDS",
             .fallback = "0",
             .help = "how long to wait for another run that writes the same snapshots to end"}},
           &flags);
  AddFlags("data", {BadRecordsFlag()}, &flags);
  AddFlags("tests",
           {{.name = "test_at_end",
             .kind = FlagKind::kSwitch,
             .fallback = "true",
             .help = "also test at the end of the run if max_iter is not a multiple of "
                     "test_interval; --notest_at_end: test only at multiples, as in Caffe"}},
           &flags);
  AddFlags("device and memory",
           {MemoryLimitFlag(),
            {.name = "gpu_graph",
             .kind = FlagKind::kSwitch,
             .fallback = "true",
             .help = "run each pass on a GPU as one CUDA graph if all shapes are constant; "
                     "--nogpu_graph: start each kernel separately"}},
           &flags);
  AddFlags("ranks", {StrategyFlag(), StagesFlag()}, &flags);
  return WithReadingFlags(WithStagingFlags(WithRankFlags(WithDeviceFlags(std::move(flags)))));
}

RankOptions TrainRankOptionsOf(const Flags& flags) {
  RankOptions options = TrainingRankOptionsOf(flags);
  options.strategy = flags.Text("strategy");
  options.pipeline_stages = flags.Text("stages");
  return options;
}

SignalEffects ReadEffects(const Flags& flags) {
  auto read = [&](const char* flag) { return ParseSignalEffect(flag, flags.Text(flag)); };
  return {read("sigint_effect"),  read("sighup_effect"),  read("sigterm_effect"),
          read("sigusr1_effect"), read("sigusr2_effect"), flags.Whole("stop_exit_code")};
}

// Null for a run, or a replica, that writes no snapshots.
std::unique_ptr<SnapshotLock> LockSnapshots(const Flags& flags, const SolverSpec& spec,
                                            const Rank& replica) {
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
      Join("'", prefix, "' already has snapshots (newest: iteration ", older.front().iter,
           "): this run starts from the beginning and will replace those with the same iteration "
           "numbers; to resume from the newest instead, use --resume=auto"));
}

// Writes what the changes of --set and --batch made of the files, beside the first snapshot: a run
// that saves none leaves nothing there.
class ResolvedWriter final : public Observer {
 public:
  explicit ResolvedWriter(const SolverSpec& spec) : spec_(spec) {}

  void OnSnapshot(const SnapshotReport&) override {
    if (written_) return;
    const std::string path = ResolvedName(spec_);
    try {
      WriteWhole(path, ResolvedText(spec_));
      written_ = true;
      LOG(INFO) << EscapeControl(
          Join("Wrote the solver and its nets, with the changes made by flags, to ", path));
    } catch (const Error& error) {
      LOG(WARNING) << error.what() << "; the run tries again with the next snapshot";
    }
  }

 private:
  const SolverSpec& spec_;
  bool written_ = false;
};

void WatchForResolved(const Flags& flags, const SolverSpec& spec, ObserverList* observers) {
  if (flags.Each("set").empty() && !flags.Has("batch")) return;
  observers->Add(std::make_unique<ResolvedWriter>(spec));
}

class Train final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kTrain,
        .summary = "train a net, or resume from a snapshot",
        .usage = "trainer train --solver=FILE [--snapshot=FILE | --resume=auto] [flags]",
        .text =
            "Paths in the solver and its nets are relative to the working folder; if nothing is "
            "there, to the folder of the file that names them. snapshot_prefix is always relative "
            "to the working folder, and its folder must exist.\n"
            "With --set or --batch, the changed solver and nets are written next to the first "
            "snapshot, as <snapshot_prefix>_resolved.prototxt.\n"
            "In a Slurm or PBS job, or with --max_wall, the run knows its time limit. It saves a "
            "snapshot and exits with code 75 before the limit, early enough for the longest "
            "iteration, test and snapshot so far. The same command with --resume=auto resumes the "
            "run; if the run is finished, it exits with code 0 at once. --requeue makes Slurm "
            "start the job again.\n"
            "--run=DIR keeps a record of the run for 'trainer status', 'trainer report' and "
            "TensorBoard. On a terminal you see one live line instead of Caffe's log. The log "
            "then goes to DIR/train.log, to --log_dir or to <snapshot_prefix>.log; --log=caffe "
            "shows it on the terminal.\n"
            "The EFFECT of a signal is stop (finish the iteration, save a snapshot, exit), "
            "snapshot (save a snapshot and continue) or none. The same SIGINT or SIGTERM again "
            "stops the program at once, without the snapshot; before the first iteration, the "
            "first one does. A signal of another kind lets the snapshot be written.\n"
            "During the run, .<name>.lock next to the snapshots blocks other runs with the same "
            "snapshot_prefix; the lock of a dead run has no effect. Snapshots are written while "
            "training continues. If a snapshot cannot be written, the run logs a warning and "
            "retries until the next snapshot is due. It retries the last snapshot until the time "
            "limit of the job, or Slurm's KillWait after SIGTERM, is near (for one minute if both "
            "are unknown). Then it writes the snapshot to --rescue_dir, $SLURM_TMPDIR or $TMPDIR, "
            "prints the command that resumes from there, and exits with code 74.\n"
            "Ranks are processes that train one model together, each on its share of every batch. "
            "--ranks=N starts them on this machine; mpirun or srun --mpi=pmix starts them on any "
            "machines. batch_size is the batch of each rank, as in Caffe, so N ranks read N times "
            "as many records per step; with --global_batch it is the batch of all ranks together. "
            "If one rank fails, all ranks stop. With virtual_ranks: V in the solver, every batch "
            "has V parts, and 1, 2, 4, ... up to V ranks train bit-identical weights.\n"
            "By default, ranks sum their gradients in every step. --strategy chooses another way "
            "to train together, see docs/strategies.md.\n"
            "--gpu=0,1 and --gpu=all start one rank per GPU. Ranks started by mpirun or srun use "
            "the GPU with their number on the machine, or the only visible one.",
        .examples =
            "trainer train --solver=models/lenet/solver.prototxt\n"
            "trainer train --solver=s.prototxt --snapshot=run/net_iter_500.solverstate\n"
            "trainer train --solver=s.prototxt --resume=auto\n"
            "trainer train --solver=s.prototxt --resume=auto --max_wall=4:00:00\n"
            "srun trainer train --solver=s.prototxt --resume=auto --requeue\n"
            "srun trainer train --solver=s.prototxt --stage_data=auto\n"
            "trainer train --solver=s.prototxt --weights=base.caffemodel\n"
            "trainer train --solver=s.prototxt --run=runs/first\n"
            "trainer train --solver=s.prototxt --set base_lr=0.05\n"
            "trainer train --solver=s.prototxt --ranks=4 --global_batch\n"
            "trainer train --solver=s.prototxt --ranks=4 --set virtual_ranks=8\n"
            "trainer train --solver=s.prototxt --ranks=4 --strategy=easgd\n"
            "trainer train --solver=s.prototxt --ranks=2 --strategy=pipeline --stages=auto\n"
            "mpirun -np 8 trainer train --solver=s.prototxt --scale_lr\n"
            "trainer train --solver=s.prototxt --gpu=all",
        .flags = TrainFlags(),
    };
  }

  int Run(const Flags& flags) override {
    RefuseTwoStarts(flags);
    if (PhaseOf(flags) == caffe::TEST) {
      throw Error(ErrorCode::kUsage,
                  "--phase=TEST: training is phase TRAIN; 'trainer test' runs a net's TEST phase");
    }
    CheckMaxWall(flags);
    ApplyBadRecords(flags);
    ApplyReadingFlags(flags);
    const RankOptions of_ranks = TrainRankOptionsOf(flags);
    if (const int ranks = RanksToStart(of_ranks, DeviceOptionsOf(flags))) {
      return LaunchRanks(ranks);
    }
    SignalWatch signals(ReadEffects(flags));
    const auto copies = StageData(flags);
    World* const world = JoinRanks(of_ranks, flags.Whole("lock_wait"));
    const bool first = world == nullptr || world->group().replica().rank == 0;
    const JobLife life(std::chrono::seconds(first ? flags.Whole("job_check") : 0));
    const auto host = world == nullptr
                          ? nullptr
                          : StartRecordServer(*world, std::chrono::seconds(of_ranks.peer_timeout));
    const std::optional<SolveResult> result = RunRank(flags, signals, world);
    if (world != nullptr) world->Finish();
    if (result != SolveResult::kStopped) return 0;
    if (first && flags.Switch("requeue")) RequeueJob();
    return flags.Whole("stop_exit_code");
  }

 private:
  // The work of this process: a rank, or a run alone (null). Nothing where nothing was left to do.
  static std::optional<SolveResult> RunRank(const Flags& flags, SignalWatch& signals,
                                            World* world) {
    SolverSpec spec = SolverOf(flags);
    const RankOptions of_ranks = TrainRankOptionsOf(flags);
    const WireType wire = ApplyCompression(of_ranks, &spec);
    DeviceChoice choice = ChooseDevice(flags, spec, LocalRankOf(world, of_ranks.share_gpu));
    choice.gpu.graphs = flags.Switch("gpu_graph");
    TrainOptions options;
    if (world != nullptr) {
      options.group = &world->group();
      options.peers = world->peers();
    }
    const Rank replica = ReplicaOf(options);
    ApplyStrategy(of_ranks, replica, &spec);
    LogToRankFile(of_ranks, replica, spec);
    TakeBatch(flags, replica, &spec);
    ScaleForRanks(of_ranks, replica, &spec);
    const std::unique_ptr<SnapshotLock> lock = LockSnapshots(flags, spec, replica);
    const Start start = FindStart(flags, spec, world, replica);
    LOG_IF(INFO, !start.done.empty()) << start.done;
    if (!start.done.empty()) return std::nullopt;
    const std::unique_ptr<LiveView> view = BeginWatching(flags, spec, replica);
    const std::unique_ptr<Device> device = MakeLoggedDevice(choice);
    LOG(INFO) << DescribeThreads();
    TakeBestBatch(flags, *device, !start.state.empty(), &spec);
    LOG_IF(INFO, LogsDetails()) << "Initializing solver from parameters: \n"
                                << spec.proto.DebugString();
    std::unique_ptr<Communicator> gpu_group;
    if (world != nullptr) {
      gpu_group = ConnectRanks(of_ranks, *world, spec, *device, choice, wire, &options);
    }
    if (replica.rank == 0) options.end = EndOfRun(flags);
    options.rescue = RescueOptionsOf(flags);
    options.snapshot = start.state;
    options.allow_outside = flags.Switch("allow_outside");
    if (options.snapshot.empty()) {
      options.weights = WeightFiles(flags, spec);
      RequireFiles(options.weights);
      if (replica.rank == 0) WarnOfOlderSnapshots(spec);
    }
    options.memory = ParseMemoryMode(flags);
    options.most_value_bytes = ActivationBudgetOf(flags, spec, *device, replica);
    options.signals = &signals;
    options.test_at_end = flags.Switch("test_at_end");
    ObserverList observers;
    options.shows_numbers = AddWatchers(flags, spec, *device, replica, view.get(), &observers);
    if (replica.rank == 0) WatchForResolved(flags, spec, &observers);
    Solver solver(spec, options, *device, observers);
    RequireRunFits(spec, *device, replica, solver);
    if (replica.rank == 0) WarnBeforeTraining(spec, solver.train_net());
    LOG(INFO) << "Starting Optimization";
    const SolveResult result = solver.Solve();
    TellOfEnd(solver, result, view.get());
    const std::string sent = world == nullptr ? "" : world->DescribeSent();
    if (!sent.empty()) LOG(INFO) << "Gradients sent to other machines by this rank: " << sent;
    if (result == SolveResult::kStopped) TellOfStop(solver, signals, view.get());
    return result;
  }

  // Where a run goes on, as rank 0 finds it.
  struct Start {
    std::string state;  // or ""
    std::string done;   // a sentence where nothing is left to do
  };

  static Start FindStart(const Flags& flags, const SolverSpec& spec, World* world,
                         const Rank& replica) {
    Start start;
    if (replica.rank == 0) {
      const ResumePoint point = WhereToResume(flags, spec, RescueFolders(flags.Text("rescue_dir")));
      start.state = point.state;
      if (flags.Has("resume") && point.iter >= spec.proto.max_iter()) {
        start.done = Join("Already at iteration ", point.iter, " of ", spec.proto.max_iter(),
                          ": the run is finished, nothing to do");
      }
    }
    if (world != nullptr) {
      start.state = TextOfRank0(world->group(), start.state);
      start.done = TextOfRank0(world->group(), start.done);
    }
    return start;
  }

  static void TellOfEnd(const Solver& solver, SolveResult result, LiveView* view) {
    // Caffe's line, which scripts look for, for a run that is done.
    if (result == SolveResult::kFinished) LOG(INFO) << "Optimization Done.";
    const std::string best = solver.DescribeBest();
    if (best.empty()) return;
    LOG(INFO) << best;
    if (view != nullptr) view->Say(best, Color::kGreen);
  }

  static std::string WhatStopped(const Solver& solver, const SignalWatch& signals) {
    const std::string signal = signals.StopSignal();
    if (!signal.empty()) return signal;
    return solver.TimeWasUp() ? "The time limit" : "A signal to another rank";
  }

  static void TellOfStop(const Solver& solver, const SignalWatch& signals, LiveView* view) {
    const std::string next =
        "to resume it, start it again with --resume=auto: " + AutoResumeCommand(CommandLine());
    LOG(INFO) << WhatStopped(solver, signals) << " stopped the run at iteration " << solver.iter()
              << "; " << next;
    if (view != nullptr) view->Say(next);
  }
};

const RegisterVerb<Train> kTrainVerb("train");

}  // namespace
}  // namespace trainer
