#pragma once
// One process's part of a training run, from what the user asks for to the exit code.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/base/ranks/communicator.h"
#include "trainer/checkpoint/snapshot_lock.h"
#include "trainer/config/solver_spec.h"
#include "trainer/datasets/local_copy.h"
#include "trainer/monitor/live_view.h"
#include "trainer/monitor/observer.h"
#include "trainer/net/net.h"
#include "trainer/parallel/world.h"
#include "trainer/run/device.h"
#include "trainer/run/input_options.h"
#include "trainer/run/jobs/scheduler.h"
#include "trainer/run/monitor_options.h"
#include "trainer/run/quick_look.h"
#include "trainer/run/ranks/join.h"
#include "trainer/run/ranks/rank_options.h"
#include "trainer/run/solver_source.h"
#include "trainer/run/start_point.h"
#include "trainer/solver/signals.h"
#include "trainer/solver/solver.h"

namespace trainer {

class CardRecorder;
class JobLiveness;
class OverfitVerdict;
class QuickFiles;

// Options that decide when a run ends before its last iteration, and how.
struct StopOptions {
  // The effects of signals: "stop", "snapshot" or "none".
  std::string sigint_effect = "stop", sighup_effect = "snapshot", sigterm_effect = "stop",
              sigusr1_effect = "stop", sigusr2_effect = "stop";
  std::string max_wall = "";    // a time, "none", or "": the limit of the batch job
  std::string until = "";       // --until: where the run ends to be continued later, or ""
  bool requeue = false;         // queue the Slurm job again
  std::string rescue_dir = "";  // folder for the last snapshot if its own folder refuses it
  int job_check = 300;          // seconds between questions whether the batch job exists; 0: none
  int stop_exit_code = 75;
  int lock_wait = 0;  // seconds to wait for another run with the same snapshots
};

// Everything that a user asks for with `trainer train`.
struct TrainRequest {
  SolverSource solver;
  StartOptions start;
  std::string batch = "";   // --batch: a batch size, "auto" or ""
  std::string memory = "";  // --memory: a size, "auto" or ""
  BufferReuse memory_mode = BufferReuse::kShared;
  DeviceOptions device;
  RankOptions ranks;
  InputOptions input;
  MonitorOptions monitor;
  StopOptions stop;
  QuickLook look;
  bool test_at_end = true;
};

// How a run reaches the world outside of its process. Tests replace the members.
struct TrainingRunDeps {
  std::function<World*(const RankOptions&, int patience)> join = JoinRanks;
  std::function<std::unique_ptr<Device>(const DeviceChoice&)> make_device = MakeLoggedDevice;
  SchedulerAccess scheduler;
  std::string powercap = "/sys/class/powercap";  // the folder of the processors' energy counters
};

// A run is made by nine calls in the order of their declaration; Run makes all of them. A call out
// of order throws kInternal. Later calls depend on earlier ones: a stop signal must end a long copy
// of data; ranks must not wait for each other during a copy; the local rank decides about the GPU;
// the strategy decides whether a batch is divided; the lock must be held before the newest snapshot
// is looked for. Destruction is the reverse of construction.
class TrainingRun {
 public:
  // `signals` must outlive the run; null: signals have no effect on it.
  TrainingRun(TrainRequest request, SignalWatch* signals, TrainingRunDeps deps = {});
  ~TrainingRun();
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  // Makes all nine calls and returns the exit code.
  int Run();

  // Copies data sets to this host.
  void CopyData();
  // Joins the ranks. Ranks other than 0 log warnings only.
  void Join();
  // Reads the solver and applies to it what the request says about ranks and the batch.
  void Configure();
  // Locks the snapshots, and finds the one to resume from as rank 0 sees it. Returns false if the
  // run is finished already: then only Leave may follow.
  bool FindStart();
  // Starts the view on the terminal, makes the device and finds the batch size of --batch=auto.
  void OpenDevice();
  // Compares the ranks and connects their devices.
  void Connect();
  // Makes the observers and the solver. Throws if the run does not fit into the memory.
  void Build();
  // Trains and logs how the run ended.
  SolveResult Train();
  // Destroys everything that other ranks or runs may wait for, waits for the other ranks, queues
  // the job again if asked, and returns the exit code.
  int Leave(SolveResult result);

  // Returns the solver with all changes of the request. Call after Configure.
  const SolverSpec& spec() const { return spec_; }
  // Returns the solver that trains. Call after Build.
  Solver& solver() { return *solver_; }

 private:
  // The calls in their order, to check that none is missing.
  enum class Call {
    kNone,
    kCopyData,
    kJoin,
    kConfigure,
    kFindStart,
    kOpenDevice,
    kConnect,
    kBuild,
    kTrain,
    kFinished,  // FindStart found a finished run
    kLeave
  };
  // Throws kInternal unless the last call was `before`, then notes this one.
  void Enter(Call call, Call before);
  bool is_rank_0() const { return rank_.rank == 0; }
  // Reads the solver's times in epochs, and --until. Call before the batch is divided among the
  // ranks.
  void FindLength();
  // Prepares a run for --overfit or --quick, after Configure's other changes.
  void ApplyLook();
  // Fills `options_` for the solver; Build calls it. Rank 0 alone sets the deadline and warns that
  // a new run will replace older snapshots. Throws if a weights file is missing.
  void SetTrainOptions();
  // Warns that a run from the beginning will replace older snapshots with the same prefix.
  void WarnOfOlderSnapshots() const;
  // Warns of layers that a GPU computes without its libraries.
  void WarnOfOwnKernels() const;
  // Logs the result of --overfit or --quick. Throws if the net did not learn, or if the snapshot
  // cannot be read back.
  void ConcludeLook();
  // Prints a line in the log and on the terminal.
  void Say(const std::string& text, Color color = Color::kPlain);
  // Logs how the run ended, the best test and, if the run was stopped, the command that resumes it.
  void LogEnd(SolveResult result);
  // Returns why nothing is left to do for a run that resumes at iteration `iter`, or "".
  std::string WhyFinished(int iter) const;
  // Returns what stopped the run: the name of a signal, the time limit, or a signal to another
  // rank.
  std::string StopReason() const;

  const TrainRequest request_;
  SignalWatch* const signals_;
  const TrainingRunDeps deps_;
  Call last_call_ = Call::kNone;
  std::vector<std::unique_ptr<LocalCopy>> copies_;
  World* world_ = nullptr;  // null in a run alone
  Rank rank_;
  std::unique_ptr<JobLiveness> liveness_;
  SolverSpec spec_;
  caffe::SolverParameter written_;  // the solver before its times in epochs were resolved
  std::string epochs_;              // the line about them, or ""
  CompressionType compression_ = CompressionType::kF32;
  DeviceChoice choice_;
  SolverOptions options_;
  std::unique_ptr<SnapshotLock> lock_;
  std::unique_ptr<OverfitVerdict> overfit_;  // with --overfit
  std::unique_ptr<QuickFiles> quick_files_;  // on rank 0 with --quick; outlives the solver
  std::string start_state_;                  // the .solverstate to resume from, or ""
  bool counted_classes_ = false;             // class weights were written into `spec_`
  std::unique_ptr<LiveView> view_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> gpu_communicator_;
  std::unique_ptr<CardRecorder> card_;  // with --run; outlives the observers
  std::optional<ObserverList> observers_;
  std::unique_ptr<Solver> solver_;
};

// Trains in this process, or starts the ranks that the request asks for and waits for them. Returns
// the exit code.
int Train(const TrainRequest& request, const TrainingRunDeps& deps = {});

}  // namespace trainer
