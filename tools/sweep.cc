#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "batch_job.h"
#include "device_flags.h"
#include "given_flags.h"
#include "job_request.h"
#include "shared_flags.h"
#include "sweep_runs.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/log/terminal.h"
#include "trainer/base/process/child_process.h"
#include "trainer/base/text/text.h"
#include "trainer/config/alternatives.h"
#include "trainer/config/overrides.h"
#include "trainer/config/resolved.h"
#include "trainer/parallel/environment.h"
#include "trainer/run/jobs/shell_quote.h"
#include "verb.h"

namespace trainer {
namespace {

// The flags of `train` that each run gets as they are.
std::vector<Flag> FlagsOfRuns() {
  static constexpr std::string_view kOwn[] = {
      "solver",   "set",   "snapshot",  "allow_outside",  "resume",
      "max_wall", "phase", "lock_wait", "stop_exit_code", "run"};
  return FlagsOfTrain(kOwn);
}

std::vector<Flag> OwnFlags() {
  return {{.name = "solver", .value = "FILE", .help = "the solver", .required = true},
          {.name = "set",
           .kind = FlagKind::kEach,
           .value = "KEY=VALUES",
           .help = "as for 'trainer train', but with several values, separated by commas: "
                   "base_lr=0.1,0.01; write lists in brackets: stepvalue=[100,200],[300]"},
          {.name = "out",
           .value = "DIR",
           .help = "folder for the folders of the runs (default: <snapshot_prefix>_sweep)"},
          {.name = "table",
           .kind = FlagKind::kSwitch,
           .help = "only print the table of the existing runs"},
          {.name = "system",
           .value = "SYSTEM",
           .fallback = "here",
           .help = "here: run on this machine; slurm: print a batch script with one task per run",
           .choices = "here|slurm"},
          {.name = "time",
           .value = "TIME",
           .fallback = "4:00:00",
           .help = "time limit of each Slurm task, as for 'trainer job'"},
          {.name = "partition", .value = "NAME", .help = "the Slurm partition to run in"},
          CoresFlag(),
          ArrayLimitFlag(),
          MaxWallFlag(),
          {.name = "stop_exit_code",
           .kind = FlagKind::kWhole,
           .value = "N",
           .fallback = "75",
           .help = "exit code when a signal or the time limit stopped the sweep",
           .max = 255}};
}

class Sweep final : public Verb {
 public:
  VerbDoc Doc() const override {
    std::vector<Flag> flags = OwnFlags();
    for (const Flag& flag : FlagsOfRuns()) flags.push_back(flag);
    return {
        .task = VerbTask::kTrain,
        .summary = "train with several settings in turn, and compare",
        .usage = "trainer sweep --solver=FILE --set KEY=VALUE,VALUE [--set ...] [flags]",
        .text =
            "Trains one run after the other, for each combination of the values. Each run has its "
            "own folder with its snapshots, the file `log` and the files of 'trainer train --run'. "
            "'trainer report' and TensorBoard compare these folders. At the end, a table lists the "
            "runs, the best test first. The table uses best_output, else accuracy, else the first "
            "output of the first test net.\n"
            "If a run fails, the table says so and the other runs continue. To resume a stopped "
            "sweep, give the same command again: runs that finished or diverged are not repeated, "
            "and the others resume from their snapshots. You may add values.\n"
            "With --system=slurm, nothing runs now. The printed script runs all combinations as "
            "tasks of a job array, and --table prints the table afterwards.",
        .examples =
            "trainer sweep --solver=s.prototxt --set base_lr=0.1,0.01,0.001\n"
            "trainer sweep --solver=s.prototxt --set base_lr=0.1,0.01 --set momentum=0,0.9\n"
            "trainer sweep --solver=s.prototxt --set base_lr=0.1,0.01 --set max_iter=500\n"
            "trainer sweep --solver=s.prototxt --set random_seed=1,2,3 --gpu=0 --out=seeds\n"
            "trainer sweep --solver=s.prototxt --set base_lr=0.1,0.01 --system=slurm > j.sh\n"
            "trainer sweep --solver=s.prototxt --set base_lr=0.1,0.01 --table",
        .flags = flags,
    };
  }

  int Run(const Flags& flags) override {
    if (ReadRankEnvironment().count > 1) {
      throw Error(ErrorCode::kUsage,
                  "a sweep starts its runs itself: start it without mpirun; for runs with several "
                  "ranks give --ranks, or --system=slurm");
    }
    CheckMaxWall(flags);
    if (flags.Has("out") && flags.Text("out").ends_with('/')) {
      throw Error(ErrorCode::kUsage, Join("--out=", flags.Text("out"), ": leave out the last '/'"));
    }
    const std::vector<std::string>& assignments = flags.Each("set");
    std::vector<std::string> first;
    for (const std::string& assignment : assignments) first.push_back(Alternatives(assignment)[0]);
    // The nets are only planned for a script: its standard error stays free of their log.
    const bool prints = flags.Text("system") == "slurm";
    std::optional<WarningsOnly> quiet;
    if (prints) quiet.emplace();
    const SolverSpec spec = Load(flags, first);
    const std::string& prefix = spec.proto.snapshot_prefix();
    const std::string folder = flags.Has("out") ? flags.Text("out") : prefix + "_sweep";
    const std::vector<SweepRun> runs = RunsOf(assignments, folder, prefix);
    for (const SweepRun& run : runs) static_cast<void>(LoadRun(flags, run));  // before any of them
    if (prints) {
      std::cout << JobScript(ArrayOf(flags, runs, spec));
      return 0;
    }
    const std::string& output = spec.proto.best_output();
    if (flags.Switch("table")) {
      Tell(runs, output);
      return 0;
    }
    const int code = TrainAll(flags, runs, output);
    Tell(runs, output);
    return code;
  }

 private:
  static SolverSpec Load(const Flags& flags, const std::vector<std::string>& changes) {
    Overrides overrides(changes);
    return LoadSolver(flags.Text("solver"), StateFlagsOf(flags), &overrides);
  }
  static SolverSpec LoadRun(const Flags& flags, const SweepRun& run) {
    try {
      return Load(flags, run.changes);
    } catch (const Error& error) {
      throw Error(error.code(), Join(error.what(), " (the run with ", run.Name(), ")"));
    }
  }

  // The exit code of the sweep: that of the first run that failed; 80 where all diverged.
  static int TrainAll(const Flags& flags, const std::vector<SweepRun>& runs,
                      const std::string& output) {
    const bool limited = flags.Has("max_wall") && flags.Text("max_wall") != "none";
    const auto end = limited ? EndOfRun(flags) : std::nullopt;
    ChildProcess child;
    Progress progress("Training", "runs", static_cast<int64_t>(runs.size()),
                      Progress::InLog::kNothing);
    int failure = 0;
    size_t diverged = 0;
    for (size_t i = 0; i < runs.size(); ++i) {
      const SweepRun& run = runs[i];
      const std::string name = Join("Run ", i + 1, " of ", runs.size(), ", ", run.Name());
      MakeFolder(flags, run);
      SweepResult result = ReadResult(run, output);
      if (result.IsOver()) {
        progress.Skip(1);
        progress.Say(
            Join(name, ": ", result.State(), " before; to run it again, remove ", run.folder));
      } else {
        progress.SetDoing("Training " + run.Name());
        LOG(INFO) << name << ": its log is " << EscapeControl(run.log);
        const ExitStatus ended = TrainOne(flags, run, end, &child);
        if (ended.code == kStop || ended.forwarded) return Stopped(flags, name, ended, &progress);
        result = ReadResult(run, output);
        progress.Add(1);
        progress.Say(Join(name, ": ", Summary(result)));
      }
      const int code = result.exit_code.value_or(0);
      diverged += code == static_cast<int>(ErrorCode::kDiverged) ? 1 : 0;
      if (failure == 0 && !result.IsOver()) failure = code;
    }
    if (diverged == runs.size()) return static_cast<int>(ErrorCode::kDiverged);
    return failure;
  }

  // Where the time is over before it begins, nothing is started.
  static ExitStatus TrainOne(const Flags& flags, const SweepRun& run,
                             std::optional<std::chrono::steady_clock::time_point> end,
                             ChildProcess* child) {
    std::vector<std::string> words = {"train", Join("--solver=", flags.Text("solver")),
                                      "--resume=auto", "--run=" + run.folder};
    for (std::string& word : GivenFlags(FlagsOfRuns(), flags)) words.push_back(std::move(word));
    for (const std::string& change : run.changes) words.insert(words.end(), {"--set", change});
    if (end) {
      const auto left =
          std::chrono::duration_cast<std::chrono::seconds>(*end - std::chrono::steady_clock::now());
      if (left.count() < 1) return {kStop};
      words.push_back(Join("--max_wall=", left.count(), "s"));
    }
    if (child->PendingStop() != 0) return {kStop};
    const ExitStatus ended = child->Run(words, run.log);
    NoteExit(run, ended.signal == 0 ? ended.code : 128 + ended.signal);
    return ended;
  }

  // Throws kCannotCreate where the folder has the run of another solver or net, whose result this
  // one would take for its own.
  static void MakeFolder(const Flags& flags, const SweepRun& run) {
    std::error_code error;
    std::filesystem::create_directories(run.folder, error);
    if (error) {
      throw Error(ErrorCode::kCannotCreate, {run.folder},
                  Join("cannot create this folder: ", error.message()));
    }
    const std::string path = JoinPath(run.folder, "settings.prototxt");
    const std::string settings = ResolvedText(LoadRun(flags, run));
    if (IsMissing(path)) return WriteWhole(path, settings);
    constexpr uint64_t kMost = uint64_t{1} << 30;
    if (ReadFile(path, kMost) == settings) return;
    throw Error(ErrorCode::kCannotCreate, {path},
                "the folder has a run of another solver or net, or they changed after that run: "
                "give another --out, or remove the folder to run it again");
  }

  static std::string Summary(const SweepResult& result) {
    std::string text = result.State();
    if (result.best) {
      text += Join(", best ", EscapeControl(result.output), " ", result.best->value,
                   " at iteration ", result.best->iter);
    }
    if (!result.IsOver() && !result.problem.empty()) text += ": " + EscapeControl(result.problem);
    return text;
  }

  static int Stopped(const Flags& flags, const std::string& name, const ExitStatus& ended,
                     Progress* progress) {
    progress->Say(
        Join(name, ": ",
             ended.signal == 0 ? std::string("stopped") : Join("ended by signal ", ended.signal),
             "; to resume, give the same command again"));
    return flags.Whole("stop_exit_code");
  }

  static void Tell(const std::vector<SweepRun>& runs, const std::string& output) {
    std::vector<SweepRow> rows;
    for (const SweepRun& run : runs) rows.emplace_back(run, ReadResult(run, output));
    SortByScore(&rows);
    std::cout << SweepTable(rows);
    for (const auto& [run, result] : rows) {
      if (result.IsOver() || result.problem.empty()) continue;
      std::cout << run.Name() << ": " << EscapeControl(result.problem) << "\n";
    }
    if (!rows[0].second.best) return;
    std::cout << "\n"
              << Painted(Color::kGreen, "Best: " + rows[0].first.Name(), STDOUT_FILENO) << ", in "
              << EscapeControl(rows[0].first.folder) << "\n";
  }

  // As `trainer job` asks for one run. Ranks of a run are started by its own --ranks.
  static JobSpec ArrayOf(const Flags& flags, const std::vector<SweepRun>& runs,
                         const SolverSpec& spec) {
    JobSpec job;
    job.solver = ShellQuote(flags.Text("solver"));
    job.name = JobName(flags.Text("solver"));
    job.time = SlotTime(flags.Text("time"));
    if (flags.Has("partition")) job.partition = ShellQuote(flags.Text("partition"));
    job.gpu = flags.Has("gpu");
    if (job.gpu && GpuOf(flags).value_or(0) != 0) {
      throw Error(ErrorCode::kUsage,
                  "--gpu: in a Slurm task, its GPU has the number 0; give --gpu=0");
    }
    job.cores = flags.Whole("cores");
    job.node_cores = CoresOfLargestNode(flags.Text("partition"));
    job.array_limit = flags.Whole("array_limit");
    FitToNet(spec, &job, std::max(1, flags.Whole("ranks")));
    job.command = Join("trainer sweep --solver=", job.solver);
    for (const std::string& set : flags.Each("set")) job.command += " --set " + ShellQuote(set);
    std::vector<Flag> table = OwnFlags();
    for (const std::string& word : GivenFlags(table, flags)) {
      if (!word.starts_with("--solver=")) job.command += " " + ShellQuote(word);
    }
    for (const std::string& word : GivenFlags(FlagsOfRuns(), flags)) {
      job.command += " " + ShellQuote(word);
      if (!word.starts_with("--gpu=") && word != "--requeue")
        job.changes.push_back(ShellQuote(word));
    }
    for (const SweepRun& run : runs) {
      std::string changes;
      for (const std::string& change : run.changes) {
        changes += Join(changes.empty() ? "" : " ", "--set ", ShellQuote(change));
      }
      job.runs.push_back({ShellQuote(run.folder), changes});
    }
    return job;
  }

  static constexpr int kStop = static_cast<int>(ErrorCode::kStopped);
};

const RegisterVerb<Sweep> kSweep("sweep");

}  // namespace
}  // namespace trainer
