#include "batch_flag.h"
#include "device_flags.h"
#include "memory_flags.h"
#include "rank_flags.h"
#include "reading_flags.h"
#include "run_flags.h"
#include "shared_flags.h"
#include "start_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/cli/verb.h"
#include "trainer/run/training_run.h"

namespace trainer {
namespace {

Flag RequeueFlag() {
  return {.name = "requeue",
          .kind = FlagKind::kSwitch,
          .help =
              "in a Slurm job: if the run stops early and its snapshot is saved, queue the job "
              "again (scontrol requeue)"};
}

Flag RescueFlag() {
  return {.name = "rescue_dir",
          .value = "DIR",
          .help =
              "folder for the last snapshot if it cannot be written to its own folder. The run "
              "first retries until the job's time limit, or Slurm's KillWait after SIGTERM, is "
              "near (for one minute if both are unknown). If this folder also fails, it tries "
              "$SLURM_TMPDIR and $TMPDIR"};
}

Flag JobCheckFlag() {
  return {.name = "job_check",
          .kind = FlagKind::kWhole,
          .value = "SECONDS",
          .fallback = "300",
          .help =
              "how often a run in a Slurm or PBS job checks that the job still exists; if not, the "
              "run saves a snapshot and exits. 0: never"};
}

Flag LogFlag() {
  return {.name = "log",
          .value = "FORM",
          .help =
              "what to print on stderr. caffe: every line of Caffe's log; live: one status line "
              "that is updated, with tests, snapshots and warnings above it. Default: live on a "
              "terminal, else Caffe's log without the lines of each layer and each epoch",
          .choices = "caffe|live"};
}

std::vector<Flag> WithStagingFlags(std::vector<Flag> flags) {
  // Off unless it is asked for: a copy takes time and room that nobody expects, and where the
  // system's memory holds the data set, or its file system is fast, it gains nothing.
  AddFlags(
      "data",
      {{.name = "stage_data",
        .value = "auto|DIR|off",
        .fallback = "off",
        .help =
            "copy databases, tar files and the files of lists to this machine before training "
            "(once for all its ranks), and read the copy. DIR: copy to this folder. auto: copy "
            "data of network file systems to $SLURM_TMPDIR, $LSCRATCH, $RAMDISK, $TMPDIR or /tmp"},
       {.name = "stage_keep",
        .kind = FlagKind::kSwitch,
        .help = "keep the copies for later runs; they are used again if the original has not "
                "changed. Without this flag, the last rank removes them"}},
      &flags);
  return flags;
}

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

StopOptions StopOptionsOf(const Flags& flags) {
  const auto effect = [&](const char* flag) { return ParseSignalEffect(flag, flags.Text(flag)); };
  StopOptions stop;
  stop.signals = {effect("sigint_effect"),  effect("sighup_effect"),
                  effect("sigterm_effect"), effect("sigusr1_effect"),
                  effect("sigusr2_effect"), flags.Whole("stop_exit_code")};
  stop.max_wall = flags.Text("max_wall");
  stop.requeue = flags.Switch("requeue");
  stop.rescue_dir = flags.Text("rescue_dir");
  stop.job_check = flags.Whole("job_check");
  stop.stop_exit_code = flags.Whole("stop_exit_code");
  stop.lock_wait = flags.Whole("lock_wait");
  return stop;
}

TrainRequest TrainRequestOf(const Flags& flags) {
  TrainRequest request;
  request.solver = SolverSourceOf(flags);
  request.start = StartOptionsOf(flags);
  request.batch = flags.Text("batch");
  request.memory = flags.Text("memory");
  request.memory_mode = ParseMemoryMode(flags);
  request.device = DeviceOptionsOf(flags);
  request.device.graphs = flags.Switch("gpu_graph");
  request.ranks = TrainingRankOptionsOf(flags);
  request.ranks.strategy = flags.Text("strategy");
  request.ranks.pipeline_stages = flags.Text("stages");
  request.input = {flags.Text("bad_records"),
                   flags.Text("db_lock"),
                   {flags.Text("stage_data"), flags.Switch("stage_keep")}};
  request.monitor = {
      flags.Text("run"), flags.Text("log"),
      flags.Text("logtostderr") == "true" || flags.Text("alsologtostderr") == "true"};
  request.stop = StopOptionsOf(flags);
  request.test_at_end = flags.Switch("test_at_end");
  return request;
}

class TrainVerb final : public Verb {
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
    RequireOneStart(StartOptionsOf(flags));
    if (PhaseOf(flags) == caffe::TEST) {
      throw Error(ErrorCode::kUsage,
                  "--phase=TEST: training is phase TRAIN; 'trainer test' runs a net's TEST phase");
    }
    TrainingRunDeps deps;
    deps.best_batch = [&flags](const TrainRequest&, const Device& device, bool resumes,
                               SolverSpec* spec) { TakeBestBatch(flags, device, resumes, spec); };
    return Train(TrainRequestOf(flags), deps);
  }
};

const RegisterVerb<TrainVerb> kTrainVerb("train");

}  // namespace
}  // namespace trainer
