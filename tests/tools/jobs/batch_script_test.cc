// Batch scripts as PBS runs them, and as Slurm runs them with a container. Scripts replace the
// commands of the queue and record their arguments.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <ctime>

#include "job.h"
#include "support/stub_commands.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class BatchScriptTest : public testing::Test {
 protected:
  BatchScriptTest() { job_.Write(); }

  // Writes the output of `trainer job` to the file `name` in the folder.
  void MakeScript(const std::string& name, std::vector<std::string> more) const {
    more.insert(more.begin(), {"job", "--solver=solver.prototxt"});
    const Outcome made = RunProgram(more, job_.options());
    ASSERT_EQ(made.exit_code, 0) << made.err;
    WriteText(job_.folder() / name, made.out);
  }
  // Returns options as in a queue: another working folder, and the variables of the queue.
  RunOptions Environment(const std::vector<std::string>& env) const {
    RunOptions options = job_.options();
    options.folder = "/";
    options.env.push_back(commands_.Path());
    options.env.push_back("TRAINER=" + ProgramPath());
    options.env.insert(options.env.end(), env.begin(), env.end());
    return options;
  }
  std::vector<std::string> OfPbs() const {
    return {"PBS_JOBID=7.host", "PBS_O_WORKDIR=" + job_.folder().path(),
            "PBS_NODEFILE=" + (job_.folder() / "nodes")};
  }
  // Runs the script with bash. The program's path is an argument, which scripts ignore.
  Outcome RunScript(const std::string& name, const std::vector<std::string>& env) const {
    RunOptions options = Environment(env);
    options.launcher = {"bash", job_.folder() / name};
    return RunProgram({}, options);
  }
  void MakeLong() {
    job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 100000000");
    job_.solver = Edited(job_.solver, "test_interval: 10", "test_interval: 100000000");
    job_.solver = Edited(job_.solver, "display: 5", "display: 1000");
    job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 0");
    job_.Write();
  }

  Job job_;
  const StubCommands commands_{job_.folder()};
};

TEST_F(BatchScriptTest, OfPbsRunsInTheFolderOfQsubAndIsDone) {
  MakeScript("job.pbs", {"--system=pbs"});
  commands_.Add("qsub", "");
  commands_.Add("qstat", "echo '    Resource_List.walltime = 04:00:00'");
  const Outcome outcome = RunScript("job.pbs", OfPbs());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the time left for PBS job 7.host (qstat)"));
  EXPECT_THAT(job_.Files("snap_iter_20.caffemodel"), testing::SizeIs(1));
  EXPECT_THAT(commands_.Asked("qsub"), IsEmpty());
}

TEST_F(BatchScriptTest, OfPbsThatRanOutOfTimeSubmitsItselfUnderItsName) {
  MakeLong();
  MakeScript("mine.pbs", {"--system=pbs"});
  commands_.Add("qsub", "");
  commands_.Add("qstat", "echo '    Resource_List.walltime = 00:00:05'");
  std::vector<std::string> env = OfPbs();
  env.push_back("JOB_FILE=mine.pbs");
  const Outcome outcome = RunScript("mine.pbs", env);
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(commands_.Asked("qsub"), ElementsAre("-v JOB_FILE=mine.pbs mine.pbs"));
  EXPECT_THAT(job_.Files("snap_iter_"), testing::SizeIs(2));
  // The next slot resumes from there.
  const Outcome next = RunScript("mine.pbs", env);
  EXPECT_THAT(next.err, HasSubstr("Resuming from snap_iter_"));
}

TEST_F(BatchScriptTest, OfPbsThatIsDeletedSavesAndStaysAway) {
  MakeLong();
  MakeScript("job.pbs", {"--system=pbs"});
  commands_.Add("qsub", "");
  commands_.Add("qstat", "echo '    Resource_List.walltime = 04:00:00'");
  RunOptions options = Environment(OfPbs());
  // qdel signals all processes of the job; here they are the processes of a session.
  options.launcher = {"setsid", "bash", job_.folder() / "job.pbs"};
  RunningProgram script({}, options);
  script.WaitForLine("Iteration 1000 ");
  kill(-script.pid(), SIGTERM);
  const Outcome outcome = script.Wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(commands_.Asked("qsub"), IsEmpty());
  EXPECT_THAT(job_.Files("snap_iter_"), testing::SizeIs(2));
}

TEST_F(BatchScriptTest, OfPbsOnSeveralNodesGivesMpirunTheListOfNodes) {
  MakeScript("job.pbs",
             {"--system=pbs", "--nodes=3", "--ranks_per_node=2", "--cores=4", "--time=2:00:00"});
  EXPECT_THAT(ReadText(job_.folder() / "job.pbs"),
              AllOf(HasSubstr("#PBS -l select=3:ncpus=8:mpiprocs=2:mem="),
                    HasSubstr("#PBS -l walltime=2:00:00\n")));
  commands_.Add("qsub", "");
  for (const int code : {0, 82, 74}) {
    commands_.Add("mpirun", Join("exit ", code));
    EXPECT_EQ(RunScript("job.pbs", OfPbs()).exit_code, code);
  }
  EXPECT_THAT(commands_.Asked("mpirun")[0],
              StartsWith(Join("-np 6 --hostfile ", job_.folder() / "nodes", " --bind-to none ",
                              ProgramPath(),
                              " train --solver=solver.prototxt --resume=auto "
                              "--global_batch")));
  EXPECT_THAT(commands_.Asked("qsub"), ElementsAre("-v JOB_FILE=job.pbs job.pbs"))
      << "after the lost rank alone";
}

// Provides Slurm's commands, and an Apptainer whose images hold this program.
class ContainerTest : public BatchScriptTest {
 protected:
  ContainerTest() {
    commands_.Add("srun", "exec \"$@\"");
    commands_.Add("squeue", "echo RUNNING");
    commands_.Add("scontrol", "");
    commands_.Add("apptainer", Join("while [ \"$1\" != trainer ]; do shift; done\nshift\nexec '",
                                    ProgramPath(), "' \"$@\""));
  }
  Outcome RunJob(std::vector<std::string> env) const {
    env.push_back("SLURM_JOB_ID=5");
    RunOptions options = Environment(env);
    options.folder = job_.folder().path();
    options.launcher = {"bash", "job.sh"};
    return RunProgram({}, options);
  }
};

TEST_F(ContainerTest, TheImageRunsTheTraining) {
  MakeScript("job.sh", {"--container=my images/trainer.sif"});
  const Outcome outcome = RunJob({"SLURM_JOB_END_TIME=4102444800"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(commands_.Asked("apptainer"),
              ElementsAre("exec my images/trainer.sif trainer train --solver=solver.prototxt "
                          "--resume=auto"));
  EXPECT_THAT(job_.Files("snap_iter_20.caffemodel"), testing::SizeIs(1));
  EXPECT_THAT(commands_.Asked("scontrol"), IsEmpty());
}

TEST_F(ContainerTest, ItsExitCodeQueuesTheJobAgain) {
  MakeLong();
  MakeScript("job.sh", {"--container=trainer.sif"});
  const Outcome outcome =
      RunJob({Join("SLURM_JOB_END_TIME=", time(nullptr) + 6), "IMAGE=/site/other.sif"});
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(commands_.Asked("apptainer")[0], StartsWith("exec /site/other.sif trainer train "));
  EXPECT_THAT(commands_.Asked("scontrol"), ElementsAre("requeue 5"));
}

TEST_F(ContainerTest, WithAGpuItAsksForTheDriver) {
  MakeScript("job.sh", {"--container=trainer.sif", "--gpu"});
  EXPECT_THAT(ReadText(job_.folder() / "job.sh"),
              AllOf(HasSubstr("srun apptainer exec --nv \"$image\" trainer train "),
                    HasSubstr("#SBATCH --gpus-per-task=1\n")));
}

}  // namespace
}  // namespace trainer
