#include "job_scripts.h"

#include <map>

#include "trainer/base/text.h"

namespace trainer {
namespace {

using Values = std::map<std::string, std::string>;

// Replaces each @NAME@.
std::string Filled(std::string text, const Values& values) {
  for (const auto& [name, value] : values) {
    const std::string mark = "@" + name + "@";
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size()) {
      text.replace(at, mark.size(), value);
    }
  }
  return text;
}

constexpr char kHead[] = R"(#!/bin/bash
# @WHAT@
# Made by: @COMMAND@
)";

constexpr char kSlurm[] =
    R"(# Submit it with sbatch, in the folder from which the paths in the solver count. The run saves and
# stops when its time is nearly over, and the job is queued again until the run is finished.
#SBATCH --job-name=@NAME@
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=@RANKS_PER_NODE@
#SBATCH --cpus-per-task=@CORES@
#SBATCH --mem=@MEMORY@G
#SBATCH --time=@TIME@
#SBATCH --signal=@BATCH@USR1@@WARNING@
#SBATCH --requeue
#SBATCH --open-mode=append
@MORE@set -u

trainer=${TRAINER:-trainer}
@VARIABLES@
# Who cancels or preempts the job signals this script, too; it has to live on for the exit code.
trap : TERM

)";

constexpr char kByMpirun[] =
    R"(# mpirun hands SIGUSR1 on to all ranks. It must not bind a rank to one core.
@RUN@ &
run=$!
trap 'kill -USR1 "$run"' USR1
wait "$run"
code=$?
while kill -0 "$run" 2>/dev/null; do # a signal ended the wait, not the run
  wait "$run"
  code=$?
done
)";

constexpr char kBySrun[] = R"(@RUN@
code=$?
)";

constexpr char kSlurmTail[] =
    R"(@AFTER@
# 75: stopped in time, all is saved. 82: a rank was lost; the last snapshot is good. Any other code
# ends the job: 0 is success, the rest would only come again. A job that is being cancelled, or was
# queued again by Slurm itself, is not RUNNING any more.
if [[ $code == 75 || $code == 82 ]] && ((${SLURM_RESTART_COUNT:-0} < 1000)) &&
  [[ $(squeue -h -j "@JOB@" -o %T) == RUNNING ]]; then
  scontrol requeue "@JOB@"
fi
exit "$code"
)";

constexpr char kPbs[] =
    R"(# Submit it with qsub, in the folder from which the paths in the solver count. The run saves and
# stops when its time is nearly over; this script then submits itself again, by the name that it
# has in that folder: job.pbs, or JOB_FILE (qsub -v JOB_FILE=NAME NAME).
#PBS -N @NAME@
#PBS -l select=@NODES@:ncpus=@NODE_CORES@:mpiprocs=@RANKS_PER_NODE@:mem=@MEMORY@gb
#PBS -l walltime=@TIME@
#PBS -r y
#PBS -j oe
# Torque asks in another way: -l nodes=@NODES@:ppn=@NODE_CORES@,mem=@MEMORY@gb
set -u
cd "$PBS_O_WORKDIR" || exit 73

trainer=${TRAINER:-trainer}
job_file=${JOB_FILE:-job.pbs}

# qdel and qrerun signal this script, too; it has to live on for the exit code.
told=
trap 'told=1' TERM

@RUN@
code=$?

# 75: stopped in time, all is saved. 82: a rank was lost; the last snapshot is good.
if [[ $code == 75 || $code == 82 ]] && [[ -z $told ]]; then
  qsub -v JOB_FILE="$job_file" "$job_file"
fi
exit "$code"
)";

constexpr char kHosts[] =
    R"(# Without a queue: run it on one of the machines. The first argument is a file of hosts, with a
# line "host slots=@RANKS_PER_NODE@" for each. The first reaches all others by ssh without a password, and all
# share this folder.
set -u

trainer=${TRAINER:-trainer}
hosts=${1:-hosts}

# A lost rank (82) ends all; the run goes on from the last snapshot, some times.
for try in 1 2 3 4 5; do
  @RUN@
  code=$?
  [[ $code == 82 ]] || break
  echo "try $try ended with 82: a rank was lost" >&2
  sleep 30
done
exit "$code"
)";

// The command of training, in lines that fit.
std::string TrainCommand(const JobRequest& job, const std::string& indent) {
  std::string program = "\"$trainer\"";
  if (!job.container.empty()) {
    program = Join("apptainer exec ", job.gpu ? "--nv " : "", "\"$image\" trainer");
  }
  std::string text = Join(program, " train --solver=", job.solver, " --resume=auto");
  const auto more = [&](const std::string& words) { text += " \\\n" + indent + words; };
  if (job.ranks() > 1) more("--global_batch");
  if (job.gpu) more("--gpu=0");
  if (job.preemptable) more("--set snapshot_every=15m --set keep_last=2");
  for (const std::string& change : job.changes) more(change);
  if (job.seeds > 0) more("--set random_seed=\"$seed\" --set snapshot_prefix=\"$prefix\"");
  if (!job.runs.empty()) more("\"${changes[@]}\" --run=\"$folder\" >>\"$folder/log\" 2>&1");
  return text;
}

std::string Launch(const JobRequest& job) {
  if (job.system == JobSystem::kMpirun) {
    return Join("mpirun --hostfile \"$hosts\" -np ", job.ranks(), " --bind-to none ",
                TrainCommand(job, "    "));
  }
  if (job.system == JobSystem::kPbs) {
    if (job.ranks() == 1) return TrainCommand(job, "  ");
    return Join("mpirun -np ", job.ranks(), " --hostfile \"$PBS_NODEFILE\" --bind-to none \\\n  ",
                TrainCommand(job, "  "));
  }
  if (job.mpirun) return "mpirun --bind-to none " + TrainCommand(job, "  ");
  return Join("srun ", job.ranks() > 1 ? "--mpi=pmix " : "", TrainCommand(job, "  "));
}

// Of an array; 0 of a job of one run.
size_t Tasks(const JobRequest& job) {
  return job.runs.empty() ? static_cast<size_t>(job.seeds) : job.runs.size();
}

std::string What(const JobRequest& job) {
  std::string what = job.seeds > 0 ? Join(job.seeds, " runs with seeds of their own, each on ")
                     : !job.runs.empty() ? Join(job.runs.size(), " runs of a sweep, each on ")
                                         : std::string("One run on ");
  what += job.nodes > 1 ? Join(job.nodes, " nodes") : std::string("one node");
  if (job.ranks() > 1) what += Join(", as ", job.ranks(), " ranks that train one model");
  if (job.gpu) what += ", on a GPU";
  if (job.preemptable) what += ", which more urgent jobs may take away";
  if (!job.container.empty()) what += ", in a container";
  return what + ".";
}

// Lines of #SBATCH that not every job has.
std::string MoreOptions(const JobRequest& job) {
  const size_t tasks = Tasks(job);
  std::string more = tasks > 0
                         ? Join("#SBATCH --output=%x_%A_%a.log\n#SBATCH --array=1-", tasks, "\n")
                         : std::string("#SBATCH --output=%x_%j.log\n");
  if (!job.partition.empty()) more += Join("#SBATCH --partition=", job.partition, "\n");
  if (job.gpu) more += "#SBATCH --gpus-per-task=1\n";
  return more;
}

std::string Variables(const JobRequest& job) {
  std::string text;
  if (!job.container.empty()) text = Join("image=${IMAGE:-", job.container, "}\n");
  if (job.seeds > 0) {
    text += Join("seed=$SLURM_ARRAY_TASK_ID\nprefix=", job.snapshot_prefix, "_seed_$seed\n");
  }
  if (job.runs.empty()) return text;
  text += "case $SLURM_ARRAY_TASK_ID in\n";
  for (size_t i = 0; i < job.runs.size(); ++i) {
    const ArrayRun& run = job.runs[i];
    text += Join("  ", i + 1, ")\n    folder=", run.folder, "\n    changes=(", run.changes,
                 ")\n    ;;\n");
  }
  text += "esac\nmkdir -p \"$folder\" || exit 73\n";
  return text;
}

// A container has the program, so that the script needs no other.
std::string WithoutUnused(std::string text) {
  if (text.find("\"$trainer\"") != std::string::npos) return text;
  const std::string line = "trainer=${TRAINER:-trainer}\n";
  const size_t at = text.find(line);
  return at == std::string::npos ? text : text.erase(at, line.size());
}

}  // namespace

std::string JobScript(const JobRequest& job) {
  std::string text = kHead;
  if (job.system == JobSystem::kSlurm) {
    text += Join(kSlurm, job.mpirun ? kByMpirun : kBySrun, kSlurmTail);
  } else {
    text += job.system == JobSystem::kPbs ? kPbs : kHosts;
  }
  text = Filled(text, {{"RUN", Launch(job)}, {"MORE", MoreOptions(job)}});
  const Values values = {
      {"WHAT", What(job)},
      {"COMMAND", job.command},
      {"NAME", job.name},
      {"NODES", Join(job.nodes)},
      {"RANKS_PER_NODE", Join(job.ranks_per_node)},
      {"CORES", Join(job.cores)},
      {"NODE_CORES", Join(job.cores * job.ranks_per_node)},
      {"MEMORY", Join(job.memory_gib)},
      {"TIME", job.time},
      {"BATCH", job.mpirun ? "B:" : ""},
      {"WARNING", Join(job.warning_seconds)},
      // The number of one task of an array is also that of the whole array.
      {"JOB", Tasks(job) > 0 ? "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" : "$SLURM_JOB_ID"},
      {"AFTER", job.runs.empty() ? "" : Join("echo \"", kExitLine, "$code\" >>\"$folder/log\"\n")},
      {"VARIABLES", Variables(job)}};
  return WithoutUnused(Filled(text, values));
}

}  // namespace trainer
