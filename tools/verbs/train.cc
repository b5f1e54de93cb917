#include "flag_groups.h"
#include "run_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/cli/verb.h"
#include "trainer/run/training_run.h"

namespace trainer {
namespace {

// Trains the net of a solver. Returns the exit code of Train.
class TrainVerb final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags_ = &flags;
    flags.Bind(&request_.solver.file, "solver", "FILE", "the solver").Required();
    DeclareStart(flags, &request_.start);
    DeclareSet(flags, &request_.solver.set);
    DeclareFreeze(flags, &request_.solver);
    DeclareUnfreezeAt(flags, &request_.solver);
    DeclareBatch(flags, &request_.batch);
    DeclarePhase(flags, &phase_);
    DeclareState(flags, &request_.solver.state);
    flags.BeginGroup("what is kept and shown");
    DeclareRunFolder(flags, &request_.monitor.run);
    flags
        .Bind(&request_.monitor.log, "log", "FORM",
              "what to print on stderr. caffe: every line of Caffe's log; live: one status line "
              "that is updated, with tests, snapshots and warnings above it. Default: live on a "
              "terminal, else Caffe's log without the lines of each layer and each epoch")
        .Choices("caffe|live");
    DeclareStop(flags, &request_.stop);
    DeclareLook(flags, &request_.look);
    flags.BeginGroup("data");
    DeclareBadRecords(flags, &request_.input.bad_records);
    flags.Bind(&request_.look.limit, "limit", "SHARE|N",
               "train on the first records only; 0.1: the first tenth; 500: the first 500. Tests "
               "read all of their own");
    flags.BeginGroup("tests");
    flags.Bind(&request_.test_at_end, "test_at_end", "",
               "also test at the end of the run if max_iter is not a multiple of "
               "test_interval; --notest_at_end: test only at multiples, as in Caffe");
    flags.BeginGroup("device and memory");
    DeclareMemoryLimit(flags, &request_.memory);
    flags.Bind(&request_.device.graphs, "gpu_graph", "",
               "run each pass on a GPU as one CUDA graph if all shapes are constant; "
               "--nogpu_graph: start each kernel separately");
    flags.BeginGroup("ranks");
    DeclareStrategy(flags, &request_.ranks);
    DeclareStages(flags, &request_.ranks);
    DeclareDevice(flags, &request_.device);
    flags.BeginGroup("ranks");
    DeclareTrainingRanks(flags, &request_.ranks);
    DeclareInput(flags, &request_.input);
  }

  int Run() override {
    const Flags& flags = flags_->values();
    RequireOneStart(request_.start);
    if (phase_ == caffe::TEST) {
      throw Error(ErrorCode::kUsage,
                  "--phase=TEST: training is phase TRAIN; 'trainer test' runs a net's TEST phase");
    }
    request_.memory_mode = ParseMemoryMode(request_.memory);
    request_.monitor.log_to_stderr =
        flags.Text("logtostderr") == "true" || flags.Text("alsologtostderr") == "true";
    return Train(request_);
  }

 private:
  // Declares the flags that say when and how a run stops early.
  static void DeclareStop(FlagSet& flags, StopOptions* stop) {
    flags.BeginGroup("signals and time");
    DeclareMaxWall(flags, &stop->max_wall);
    flags.Bind(&stop->until, "until", "ITER|SHARE",
               "save a snapshot, test and exit with code 0 at this iteration, such as 1000, or at "
               "a share of max_iter, such as 1/9. The learning rate still follows max_iter, so a "
               "run that is resumed from there equals one that was not interrupted");
    flags.Bind(&stop->requeue, "requeue", "",
               "in a Slurm job: if the run stops early and its snapshot is saved, queue the job "
               "again (scontrol requeue)");
    flags.Bind(&stop->rescue_dir, "rescue_dir", "DIR",
               "folder for the last snapshot if it cannot be written to its own folder. The run "
               "first retries until the job's time limit, or Slurm's KillWait after SIGTERM, is "
               "near (for one minute if both are unknown). If this folder also fails, it tries "
               "$SLURM_TMPDIR and $TMPDIR");
    flags.Bind(
        &stop->job_check, "job_check", "SECONDS",
        "how often a run in a Slurm or PBS job checks that the job still exists; if not, the "
        "run saves a snapshot and exits. 0: never");
    flags.Bind(&stop->sigint_effect, "sigint_effect", "EFFECT", "what Ctrl-C does");
    flags.Bind(&stop->sighup_effect, "sighup_effect", "EFFECT", "what SIGHUP does");
    flags.Bind(&stop->sigterm_effect, "sigterm_effect", "EFFECT", "what SIGTERM does");
    flags.Bind(&stop->sigusr1_effect, "sigusr1_effect", "EFFECT", "what SIGUSR1 does");
    flags.Bind(&stop->sigusr2_effect, "sigusr2_effect", "EFFECT", "what SIGUSR2 does");
    flags
        .Bind(&stop->stop_exit_code, "stop_exit_code", "N",
              "exit code if a signal or the time limit stops the run")
        .Range(0, 255);
    flags.Bind(&stop->lock_wait, "lock_wait", "SECONDS",
               "how long to wait for another run that writes the same snapshots to end");
  }

  // Declares --overfit and --quick.
  static void DeclareLook(FlagSet& flags, QuickLook* look) {
    flags.BeginGroup("quick looks");
    flags
        .Bind(&look->overfit, "overfit", "N",
              "check that the net can learn: train and test on the same N batches, without "
              "random changes of images, dropout, mixup and weight decay, until the loss is near "
              "0. Exits with code 84 and the likely cause if it does not get there. Saves nothing")
        .Range(0, 100000);
    flags.Bind(&look->quick, "quick", "",
               "make one iteration, test one batch, write a snapshot, read it back and remove it; "
               "no file stays");
  }

  // Declares the flags for the data's copies and locks.
  static void DeclareInput(FlagSet& flags, InputOptions* input) {
    flags.BeginGroup("data");
    flags
        .Bind(&input->local_copy.folder, "local_copy", "auto|DIR|off",
              "copy databases, tar files and the files of lists to this machine before training "
              "(once for all its ranks), and read the copy. DIR: copy to this folder. auto: copy "
              "data of network file systems to $SLURM_TMPDIR, $LSCRATCH, $RAMDISK, $TMPDIR or /tmp")
        .Alias("stage_data");
    flags
        .Bind(&input->local_copy.keep, "keep_local_copy", "",
              "keep the copies for later runs; they are used again if the original has not "
              "changed. Without this flag, the last rank removes them")
        .Alias("stage_keep");
    DeclareDbLock(flags, &input->db_lock);
  }

  TrainRequest request_;
  caffe::Phase phase_ = caffe::TRAIN;
  const FlagSet* flags_ = nullptr;
};

const RegisterVerb<TrainVerb> kTrainVerb("train");

}  // namespace
}  // namespace trainer
