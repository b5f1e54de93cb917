// Ranks that mpirun started differently, on one machine and on two: all end at once, with one exit
// code and one message that names the difference.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <thread>

#include "rank_job.h"
#include "trainer/datasets/digits.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/database_writer.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Rank 1 runs `shell` before it becomes the program "$@". The folder "other" is a copy of the job
// that the test changed.
struct Unlike {
  const char* name;
  const char* shell;
  int code;
  std::vector<std::string> parts;  // of the message
  bool joins = true;  // whether rank 1 joins the others; if not, its machine does not matter
};

std::ostream& operator<<(std::ostream& out, const Unlike& unlike) { return out << unlike.name; }

const Unlike kUnlike[] = {
    {"ANet",
     "cd other; sed -i 's/num_output: 500/num_output: 40/' net.prototxt",
     76,
     {"do not agree on the solver and its nets: rank 0 (", "has 'num_output: 500', rank 1 (",
      "has 'num_output: 40'"}},
    {"ASeed",
     "set -- \"$@\" --set random_seed=8",
     76,
     {"has 'random_seed: 3', rank 1 (", "has 'random_seed: 8'"}},
    {"ABatch", "set -- \"$@\" --global_batch", 76, {"has 'batch_size: 16'", "has 'batch_size: 8'"}},
    {"ADataSetOfTheSameSize",
     "cd other; rm -r data/train_lmdb; cp -r data/same_size data/train_lmdb",
     76,
     {"do not agree on the data: rank 0 (", "'data/train_lmdb: 100 records '00000000' to "}},
    {"AProgram",
     "cp \"$1\" other/trainer; printf x >> other/trainer; shift; set -- ./other/trainer \"$@\"",
     76,
     {"do not agree on the program: rank 0 (", "checksum"}},
    {"NoSolver", "cd other; rm solver.prototxt", 66, {"rank 1 (", "solver.prototxt: cannot open"}},
    {"NoMpi",
     "echo junk > other/libmpi.so.40; export LD_LIBRARY_PATH=$PWD/other",
     69,
     {"these ranks need MPI, but the MPI library cannot be loaded"},
     false},
};

class RankAgreementTest : public RankJob {
 protected:
  RankAgreementTest() { MakeOther(); }

  void MakeOther() const {
    const std::string folder = job_.folder().path();
    fs::remove_all(folder + "/other");
    fs::create_directory(folder + "/other");
    for (const char* file : {"net.prototxt", "solver.prototxt"}) {
      fs::copy_file(folder + "/" + file, folder + "/other/" + file);
    }
    fs::copy(folder + "/data", folder + "/other/data", fs::copy_options::recursive);
  }

  void MakeOtherData(const std::string& name, uint64_t seed, int64_t records) const {
    const std::string drawn = job_.folder() / "more";
    WriteDigits({.folder = drawn, .train = records, .test = 1, .seed = seed});
    fs::rename(drawn + "/train_lmdb", job_.folder() / "other/data/" + name);
    fs::remove_all(drawn);
  }

  // Runs two ranks, after rank 1 has run `shell`. If `machines` is true, each rank has its own
  // machine.
  Outcome RunUnlike(const std::string& shell, bool machines,
                    const std::vector<std::string>& more = {}) {
    const std::string script =
        std::string(machines ? "export TRAINER_MACHINE=m$OMPI_COMM_WORLD_RANK; " : "") +
        "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then " + shell + "; fi; exec \"$@\"";
    return Train(more, {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                        "-np", "2", "sh", "-c", script, "sh"});
  }
};

#define SKIP_WITHOUT_MPIRUN()                                 \
  if (std::system("mpirun --version >/dev/null 2>&1") != 0) { \
    GTEST_SKIP() << "there is no mpirun here";                \
  }

class UnlikeRanksTest : public RankAgreementTest, public testing::WithParamInterface<Unlike> {};

TEST_P(UnlikeRanksTest, EndWithTheDifferenceInOneMessage) {
  SKIP_WITHOUT_MPIRUN();
  const Unlike& unlike = GetParam();
  for (const bool machines : {false, true}) {
    if (machines && !unlike.joins) break;
    MakeOther();
    if (std::string(unlike.shell).find("data/") != std::string::npos) {
      MakeOtherData("same_size", 9, 100);
    }
    const Outcome outcome = RunUnlike(unlike.shell, machines);
    EXPECT_EQ(outcome.exit_code, unlike.code) << outcome.err;
    ASSERT_EQ(outcome.Errors().size(), 1u) << outcome.err;
    for (const std::string& part : unlike.parts) {
      EXPECT_THAT(outcome.Errors()[0], HasSubstr(part));
    }
    EXPECT_THAT(job_.Files("."), testing::IsEmpty());
    EXPECT_THAT(job_.Files("snap"), testing::IsEmpty());
  }
}

std::string NameOfRankAgreement(const testing::TestParamInfo<Unlike>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(By, UnlikeRanksTest, testing::ValuesIn(kUnlike), NameOfRankAgreement);

// The ranks have two machines, because ranks on one machine share its cores equally.
TEST_F(RankAgreementTest, RanksWithAnotherNumberOfThreadsEnd) {
  SKIP_WITHOUT_MPIRUN();
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "there is one core";
  const Outcome outcome = RunUnlike("export OMP_NUM_THREADS=2", true);
  EXPECT_EQ(outcome.exit_code, 76) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr("do not agree on the number of threads: rank 0 ("),
                                HasSubstr("has '1'"), HasSubstr("has '2'"))));
}

// Each machine has its own copy, made in another way.
TEST_F(RankAgreementTest, RanksWithACopyOfTheDataTrain) {
  SKIP_WITHOUT_MPIRUN();
  const std::string copy = job_.folder() / "other/data/train_lmdb";
  fs::remove_all(copy);
  const auto from = OpenCursor("LMDB", job_.folder() / "data/train_lmdb");
  const auto to = CreateDb("LMDB", copy);
  for (bool end = false; !end; end = from->Next()) {
    to->Put(from->Key(), from->Value());
    to->Commit();  // writes pages in another order
  }
  const Outcome outcome = RunUnlike("cd other", true);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(RankAgreementTest, ABadFlagOfAllRanksIsSaidOnce) {
  SKIP_WITHOUT_MPIRUN();
  for (const char* flag : {"--ranks=2", "--bogus", "--sigint_effect=jump"}) {
    // Ranks that have not connected wait a few seconds for each other's message, which may be too
    // short if other programs use the cores.
    Outcome outcome = RunUnlike(":", false, {flag});
    for (int tries = 0; tries < 4 && outcome.Errors().size() == 2; ++tries) {
      outcome = RunUnlike(":", false, {flag});
    }
    EXPECT_EQ(outcome.exit_code, 64) << outcome.err;
    EXPECT_EQ(outcome.Errors().size(), 1u) << outcome.err;
  }
}

TEST_F(RankAgreementTest, NoFolderForSnapshotsIsSaidOnce) {
  job_.solver = Edited(job_.solver, "snapshot_prefix: \"snap\"", "snapshot_prefix: \"no/snap\"");
  job_.Write();
  const Outcome outcome = Train({"--ranks=2"});
  EXPECT_EQ(outcome.exit_code, 73) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(HasSubstr("rank 0 ("), HasSubstr("no"))));
}

TEST_F(RankAgreementTest, ASnapshotThatIsNotThereIsSaidOnce) {
  const Outcome outcome = Train({"--ranks=2", "--snapshot=nothing.solverstate"});
  EXPECT_NE(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("nothing.solverstate")));
}

// The variables are from a launcher without a server here: another MPI's, or inherited from a
// shell.
TEST_F(RankAgreementTest, RanksThatMpiDoesNotFindAreRefused) {
  SKIP_WITHOUT_MPIRUN();
  for (const std::string variable :
       {"PMI_SIZE=4", "OMPI_COMM_WORLD_SIZE=2", "SLURM_STEP_NUM_TASKS=3"}) {
    RunOptions options = job_.options();
    options.env.insert(options.env.end(), {variable, "PMIX_RANK=0"});
    const Outcome outcome = RunProgram(job_.TrainCommand(), options);
    EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
    const size_t name = variable.find('=');
    EXPECT_THAT(outcome.Errors(),
                ElementsAre(AllOf(HasSubstr(variable.substr(0, name) + " says that " +
                                            variable.substr(name + 1) + " ranks were started"),
                                  HasSubstr("srun --mpi=pmix"))));
  }
}

// A shell that mpirun started may live longer than mpirun.
TEST_F(RankAgreementTest, RanksWhoseLauncherHasEndedAreRefused) {
  SKIP_WITHOUT_MPIRUN();
  RunOptions options = job_.options();
  options.launcher = {"sh", "-c",
                      "mpirun --allow-run-as-root --oversubscribe -np 2 sh -c 'export -p "
                      ">env$OMPI_COMM_WORLD_RANK'; . ./env0; exec \"$@\"",
                      "sh"};
  const Outcome outcome = RunProgram(job_.TrainCommand(), options);
  EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("mpirun or srun has already ended")));
}

TEST_F(RankAgreementTest, AWorldOfOneRankTrainsAlone) {
  SKIP_WITHOUT_MPIRUN();
  const std::vector<std::string> one = {"mpirun", "--allow-run-as-root", "-np", "1"};
  const Outcome outcome = Train({"--global_batch"}, one);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("ranks on")));
  EXPECT_THAT(Train({"--ranks=2", "--global_batch"}, one).err, HasSubstr("2 ranks on 1 machine"));
}

TEST_F(RankAgreementTest, MpiIsOpenedWhereItJoinsRanksAlone) {
  SKIP_WITHOUT_MPIRUN();
  RunOptions options = job_.options();
  options.env.push_back("LD_DEBUG=files");  // the loader lists the files that it opens
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"--version"}, job_.TrainCommand(),
        job_.TrainCommand({"--ranks=2"})}) {
    const Outcome outcome = RunProgram(command, options);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.err, HasSubstr("file=libdnnl"));
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("libmpi")));
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("libopen-rte")));
  }
  options.launcher = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2"};
  EXPECT_THAT(RunProgram(job_.TrainCommand(), options).err, HasSubstr("libmpi"));
}

}  // namespace
}  // namespace trainer
