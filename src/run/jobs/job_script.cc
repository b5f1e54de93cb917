#include "trainer/run/jobs/job_script.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "jobs/shell_quote.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/duration.h"
#include "trainer/base/text/text.h"

namespace trainer {

// The templates scripts/jobs/*.sh.in, which the build compiles into the program.
std::string_view SlurmScript();
std::string_view PbsScript();
std::string_view LsfScript();
std::string_view SqsubScript();
std::string_view MpirunScript();

namespace {

// Waits for the run, which the script has started in the background: otherwise a signal that the
// queue sends to the shell only would wait for the end of the run. mpirun forwards SIGUSR1.
constexpr char kWaitForRun[] =
    "run=$!\n"
    "trap 'kill -USR1 \"$run\"' USR1\n"
    "wait \"$run\"\n"
    "code=$?\n"
    "while kill -0 \"$run\" 2>/dev/null; do # a signal interrupted the wait, and the run "
    "continues\n"
    "  wait \"$run\"\n"
    "  code=$?\n"
    "done";

using ScriptValues = std::map<std::string_view, std::string>;

// Keeps the lines from "#if NAME" to "#else" or "#end" if NAME has a value, and the lines from
// "#else" to "#end" if it is empty.
std::string SelectLines(std::string_view text, const ScriptValues& values) {
  constexpr std::string_view kIf = "#if ";
  std::string selected;
  bool keeps = true;
  while (!text.empty()) {
    const size_t end = text.find('\n') + 1;
    const std::string_view line = text.substr(0, end - 1);
    if (line.starts_with(kIf)) {
      keeps = !values.at(line.substr(kIf.size())).empty();
    } else if (line == "#else") {
      keeps = !keeps;
    } else if (line == "#end") {
      keeps = true;
    } else if (keeps) {
      selected += text.substr(0, end);
    }
    text.remove_prefix(end);
  }
  return selected;
}

// Replaces each mark @NAME@ in one pass, so that a mark in a value, such as a file name, stays.
std::string ReplaceMarks(std::string_view text, const ScriptValues& values) {
  std::string replaced;
  for (size_t at; (at = text.find('@')) != std::string_view::npos;) {
    replaced += text.substr(0, at);
    text.remove_prefix(at + 1);
    const size_t end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    if (end == 0 || end == std::string_view::npos || text[end] != '@') {
      replaced += '@';
      continue;
    }
    replaced += values.at(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return replaced.append(text);
}

// Returns whether srun gives each rank a GPU, which the rank then sees as number 0.
bool HasGpuByTask(const JobSpec& job) { return job.system == JobSystem::kSlurm && !job.mpirun; }

// Returns the GPUs of the ranks of one node. A queue that hides the GPUs of other jobs numbers the
// rest from 0. sqsub itself chooses how many ranks a node has.
std::string GpusOfNode(const JobSpec& job) {
  if (job.system == JobSystem::kSqsub && job.ranks() > 1) return "all";
  std::string gpus = "0";
  if (HasGpuByTask(job)) return gpus;
  for (int i = 1; i < job.ranks_per_node; ++i) gpus += Join(",", i);
  return gpus;
}

// Returns whether the run cannot ask the queue for its time limit, so that a flag must name it.
bool NeedsMaxWall(const JobSpec& job) {
  return job.system == JobSystem::kLsf || job.system == JobSystem::kSqsub;
}

// Returns the command that trains, with one flag per line.
std::string TrainCommand(const JobSpec& job) {
  const std::string indent = job.system == JobSystem::kMpirun ? "    " : "  ";
  std::string program = "\"$trainer\"";
  if (!job.container.empty()) {
    program = Join("apptainer exec ", job.gpu ? "--nv " : "", "\"$image\" trainer");
  }
  if (job.workers > 0) return Join(program, " ", JoinList(job.worker, " "));
  std::string text = Join(program, " train --solver=", job.solver, " --resume=auto");
  const auto more = [&](const std::string& words) { text += " \\\n" + indent + words; };
  if (job.ranks() > 1 && job.global_batch) more("--global_batch");
  if (job.gpu) more("--gpu=" + GpusOfNode(job));
  if (NeedsMaxWall(job)) more("--max_wall=" + WallTimeText(job.time));
  if (!job.run.empty()) {
    // "auto" is a folder next to the snapshots, whose prefix already contains the seed.
    const bool adds_seed = job.seeds > 0 && job.run != "auto";
    more(Join("--run=", job.run, adds_seed ? "_seed_\"$seed\"" : ""));
  }
  if (job.preemptable) more("--set snapshot_every=15m --set keep_last=2");
  for (const std::string& assignment : job.assignments) more("--set " + assignment);
  for (const std::string& flag : job.train_flags) more(flag);
  if (job.seeds > 0) more("--set random_seed=\"$seed\" --set snapshot_prefix=\"$prefix\"");
  if (!job.tasks.empty()) more("\"${changes[@]}\" --run=\"$folder\" >>\"$folder/log\" 2>&1");
  return text;
}

// Returns the first comment of the script, such as "One run on one node, on a GPU.".
std::string Description(const JobSpec& job) {
  std::string text = job.seeds > 0        ? Join(job.seeds, " runs with different seeds, each on ")
                     : !job.tasks.empty() ? Join(job.tasks.size(), " runs of a sweep, each on ")
                     : job.workers > 0    ? Join(job.workers, " tasks of a search, each on ")
                                          : std::string("One run on ");
  text += job.nodes > 1 ? Join(job.nodes, " nodes") : std::string("one node");
  if (job.ranks() > 1) text += Join(", as ", job.ranks(), " ranks that train one model");
  if (job.gpu) text += job.ranks() > 1 ? ", each on its own GPU" : ", on a GPU";
  if (job.preemptable) text += ", which jobs of higher priority may preempt";
  if (!job.container.empty()) text += ", in a container";
  return text + ".";
}

// Returns the branches of "case $SLURM_ARRAY_TASK_ID in". Task 1 is the first of `tasks`; each
// branch sets the variables `folder` and `changes`.
std::string TaskBranches(const std::vector<ArrayTask>& tasks) {
  std::string text;
  for (size_t i = 0; i < tasks.size(); ++i) {
    std::string changes;
    for (const std::string& assignment : tasks[i].assignments) {
      changes += Join(changes.empty() ? "" : " ", "--set ", assignment);
    }
    if (!tasks[i].batch.empty()) changes += " --batch=" + tasks[i].batch;
    text += Join(i == 0 ? "" : "\n", "  ", i + 1, ")\n    folder=", tasks[i].folder,
                 "\n    changes=(", changes, ")\n    ;;");
  }
  return text;
}

// Returns `text`, or "" if `holds` is false. SelectLines treats "" as false.
std::string TextIf(bool holds, std::string_view text = "yes") {
  return std::string(holds ? text : "");
}

std::string JoinWith(const std::vector<std::string>& words, char between) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text;
}

// Returns the file to which the queue writes the log: job.output or, without it, a name after the
// job. With Slurm, the name contains the number of the task in an `array`. PBS and Moab choose
// their own, so the result is "".
std::string OutputOf(const JobSpec& job, bool array) {
  if (!job.output.empty()) return job.output;
  switch (job.system) {
    case JobSystem::kSlurm:
      return array ? "%x_%A_%a.log" : "%x_%j.log";
    case JobSystem::kLsf:
      return job.name + "_%J.log";
    case JobSystem::kSqsub:
      return job.name + ".log";
    default:
      return "";
  }
}

// Adds the values of the marks that only the templates of other systems than Slurm contain.
void AddQueueValues(const JobSpec& job, ScriptValues* values) {
  const bool moab = job.system == JobSystem::kMoab;
  const int64_t minutes = job.time.count() / 60;
  const std::string gpus = job.gpu ? Join(job.ranks_per_node) : "";
  const std::string queue = job.gpu ? "gpu" : job.ranks() > 1 ? "mpi" : "threaded";
  values->merge(ScriptValues{
      {"MOAB", TextIf(moab)},
      {"DIRECTIVE", moab ? "MSUB" : "PBS"},
      {"SUBMIT", moab ? "msub" : "qsub"},
      {"JOB_FILE", moab ? "job.msub" : "job.pbs"},
      {"NODE_GPUS", gpus.empty() ? "" : Join(moab ? ":gpus=" : ":ngpus=", gpus)},
      {"PBS_CONSTRAINT", job.constraint.empty() ? "" : ":" + job.constraint},
      {"MOAB_FEATURE", TextIf(moab, job.constraint)},
      // PBS Pro lists a node once for each rank (mpiprocs), Torque and LSF once for each core.
      {"PER_NODE",
       job.system == JobSystem::kPbs ? "" : Join("--map-by ppr:", job.ranks_per_node, ":node ")},
      {"ALL_MEMORY", Join(job.memory_gib * job.nodes)},
      {"ALL_CORES", Join(job.cores * job.ranks())},
      {"RANK_MEMORY", Join((job.memory_gib + job.ranks_per_node - 1) / job.ranks_per_node)},
      {"MINUTES", Join(minutes)},
      {"HOURS_AND_MINUTES", Join(minutes / 60, minutes % 60 < 10 ? ":0" : ":", minutes % 60)},
      {"WARNING_MINUTES", Join((job.warning_seconds + 59) / 60)},
      {"SQSUB_QUEUE", job.partition.empty() ? queue : job.partition},
      {"SQSUB_GPUS", TextIf(job.gpu, " --gpp=1")},
  });
}

// Returns the value of each mark in the templates; "" means false in a line "#if". `job` must be
// quoted already.
ScriptValues ValuesOf(const JobSpec& job) {
  const size_t tasks =
      job.tasks.empty() ? static_cast<size_t>(std::max(job.seeds, job.workers)) : job.tasks.size();
  ScriptValues values = {
      {"WHAT", Description(job)},
      {"COMMAND", JoinWith(job.command, ' ')},
      {"NAME", job.name},
      {"NODES", Join(job.nodes)},
      {"RANKS_PER_NODE", Join(job.ranks_per_node)},
      {"RANKS", Join(job.ranks())},
      {"SEVERAL_RANKS", TextIf(job.ranks() > 1)},
      {"CORES", Join(job.cores)},
      {"NODE_CORES", Join(job.cores * job.ranks_per_node)},
      {"MEMORY", Join(job.memory_gib)},
      {"TIME", WallTimeText(job.time)},
      {"WARNING", Join(job.warning_seconds)},
      {"PARTITION", job.partition},
      {"ACCOUNT", job.account},
      {"QOS", job.qos},
      {"MAIL", job.mail},
      {"CONSTRAINT", job.constraint},
      {"OUTPUT", OutputOf(job, tasks > 0)},
      {"MODULES", JoinWith(job.modules, ' ')},
      {"LINES", JoinWith(job.lines, '\n')},
      {"GPU", TextIf(job.gpu)},
      {"GPU_BY_TASK", TextIf(job.gpu && HasGpuByTask(job))},
      {"GPU_BY_NODE", TextIf(job.gpu && !HasGpuByTask(job))},
      {"MPIRUN", TextIf(job.mpirun)},
      {"CONTAINER", job.container},
      {"ARRAY_TASKS", TextIf(tasks > 0, Join(tasks))},
      {"ARRAY_LIMIT", TextIf(job.array_limit > 0, Join("%", job.array_limit))},
      {"WAIT", kWaitForRun},
      {"SEEDS", TextIf(job.seeds > 0)},
      {"PREFIX", job.snapshot_prefix},
      {"SWEEP_RUNS", TaskBranches(job.tasks)},
      {"EXIT_LINE", kExitLine},
      // In one task of an array, SLURM_JOB_ID may name the whole array.
      {"JOB_ID", tasks > 0 ? "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" : "$SLURM_JOB_ID"},
      {"SRUN", job.ranks() > 1 ? "srun --mpi=pmix" : "srun"},
      {"TRAIN", TrainCommand(job)}};
  AddQueueValues(job, &values);
  return values;
}

// Moab uses the template of PBS.
std::string_view TemplateOf(JobSystem system) {
  switch (system) {
    case JobSystem::kPbs:
    case JobSystem::kMoab:
      return PbsScript();
    case JobSystem::kLsf:
      return LsfScript();
    case JobSystem::kSqsub:
      return SqsubScript();
    case JobSystem::kMpirun:
      return MpirunScript();
    case JobSystem::kSlurm:
      break;
  }
  return SlurmScript();
}

// Quotes a word of the command that printed the script. In --solver=FILE only the name of the file
// is quoted.
std::string QuoteCommandWord(const std::string& word) {
  constexpr std::string_view kSolver = "--solver=";
  if (!word.starts_with(kSolver)) return ShellQuote(word);
  return Join(kSolver, ShellQuote(word.substr(kSolver.size())));
}

void QuoteAll(std::vector<std::string>* words) {
  for (std::string& word : *words) word = ShellQuote(word);
}

// Returns the job with its texts quoted for the shell. The lines of `job.lines` stay unquoted;
// lines that start with # come first, because the batch system reads directives only before the
// first command.
JobSpec Quoted(JobSpec job) {
  for (std::string* const text : {&job.partition, &job.account, &job.qos, &job.constraint,
                                  &job.mail, &job.output, &job.container, &job.run}) {
    if (!text->empty()) *text = ShellQuote(*text);
  }
  job.solver = ShellQuote(job.solver);
  job.snapshot_prefix = ShellQuote(job.snapshot_prefix);
  QuoteAll(&job.modules);
  QuoteAll(&job.assignments);
  QuoteAll(&job.train_flags);
  QuoteAll(&job.worker);
  for (ArrayTask& task : job.tasks) {
    task.folder = ShellQuote(task.folder);
    QuoteAll(&task.assignments);
    if (!task.batch.empty()) task.batch = ShellQuote(task.batch);
  }
  for (const std::string& line : job.lines) static_cast<void>(ShellQuote(line));  // may throw
  std::ranges::stable_partition(job.lines, [](const auto& line) { return line.starts_with('#'); });
  for (std::string& word : job.command) word = QuoteCommandWord(word);
  return job;
}

}  // namespace

void SetGpus(const std::string& ids, JobSpec* job) {
  job->gpu = !ids.empty();
  if (ids.empty() || ids == "0" || ids == "all") return;
  std::string expected;  // "0,1,2": as many as `ids` lists
  const auto count = static_cast<int>(SplitList(ids).size());
  for (int i = 0; i < count; ++i) expected += Join(i == 0 ? "" : ",", i);
  if (ids != expected || (job->ranks_per_node != 1 && job->ranks_per_node != count)) {
    throw Error(ErrorCode::kUsage,
                Join("--gpu=", EscapeControl(ids),
                     ": in a job, the first GPU has the number 0, and each rank uses one GPU; "
                     "for N GPUs on each node give --ranks_per_node=N --gpu"));
  }
  job->ranks_per_node = count;
}

std::string JobScript(const JobSpec& job) {
  const ScriptValues values = ValuesOf(Quoted(job));
  return ReplaceMarks(SelectLines(TemplateOf(job.system), values), values);
}

}  // namespace trainer
