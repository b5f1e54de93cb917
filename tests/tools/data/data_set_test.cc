// Data sets in the program: checking, converting, copying to the training machine, diagnosing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "in_process.h"
#include "job.h"
#include "support/records.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Outcome Dataset(const Job& job, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "dataset");
  return RunHere(arguments, job.options());
}

TEST(DatasetCheckTest, ABadRecordIsNamedAndEndsWith65) {
  const Job job;
  PutRecord(job, "data/train_lmdb", 3, "no record");
  const Outcome outcome = Dataset(job, {"check", "data/train_lmdb"});
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.out, HasSubstr("unusable: 1\n"));
  EXPECT_THAT(outcome.Errors(),
              testing::ElementsAre(AllOf(HasSubstr("record '00000003' is not a Datum"),
                                         HasSubstr("records 1 is unusable"))));
}

TEST(DatasetCheckTest, ChecksumsFindAChangedRecord) {
  const Job job;
  const Outcome written = Dataset(job, {"check", "data/train_lmdb", "--write_crc"});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("checksums: written to data/train_lmdb/records.crc32c"));
  std::filesystem::copy(job.folder() / "data/train_lmdb/records.crc32c", job.folder() / "kept");
  PutRecord(job, "data/train_lmdb", 3, DigitOf(1).SerializeAsString());
  std::filesystem::copy(job.folder() / "kept", job.folder() / "data/train_lmdb/records.crc32c");
  const Outcome outcome = Dataset(job, {"check", "data/train_lmdb"});
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.err, HasSubstr("record '00000003' differs from its checksum"));
}

TEST(DatasetCheckTest, TrainingNamesARecordThatDiffersFromItsChecksum) {
  Job job;
  job.Write();
  ASSERT_EQ(Dataset(job, {"check", "data/train_lmdb", "--write_crc"}).exit_code, 0);
  ASSERT_EQ(job.Train().exit_code, 0);
  std::filesystem::copy(job.folder() / "data/train_lmdb/records.crc32c", job.folder() / "kept");
  PutRecord(job, "data/train_lmdb", 3, DigitOf(1).SerializeAsString());
  std::filesystem::copy(job.folder() / "kept", job.folder() / "data/train_lmdb/records.crc32c");
  const Outcome outcome = job.Train();
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.Errors(),
              testing::ElementsAre(HasSubstr("record '00000003' differs from its checksum in ")));
  EXPECT_EQ(job.Train({"--bad_records=skip=9"}).exit_code, 0);
}

TEST(DatasetConvertTest, NetsTrainFromTheHdf5FileThatConvertMakes) {
  Job job;
  ASSERT_EQ(Dataset(job, {"convert", "data/train_lmdb", "data/train.h5"}).exit_code, 0);
  const Outcome again = Dataset(job, {"convert", "data/train_lmdb", "data/train.h5"});
  EXPECT_EQ(again.exit_code, 73);
  WriteText(job.folder() / "net.prototxt", R"(
      layer { name: 'd' type: 'HDF5Data' top: 'data' top: 'label'
              hdf5_data_param { source: 'data/train.txt' batch_size: 5 } }
      layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'
              inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }
      layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' })");
  const Outcome outcome =
      RunHere({"time", "--model=net.prototxt", "--iterations=1"}, job.options());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(DatasetBenchTest, PrintsATableOfRates) {
  const Job job;
  const Outcome outcome = Dataset(job, {"bench", "data/train_lmdb", "--seconds=1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"read  ", "records/s", "one after the other", "at random", "decoded"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

TEST(DatasetTest, AnEmptyNameIsRefusedBeforeAnythingIsRead) {
  const Job job;
  const Outcome outcome = Dataset(job, {"convert", "data/train_lmdb", ""});
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("one of the file names is empty ('')")));
}

TEST(DatasetTest, AFileThatMayNotGrowIsNamedAsTheUserNamedIt) {
  const Job job;
  RunOptions options = job.options();
  options.file_limit = 30'000;
  const Outcome outcome = RunProgram({"dataset", "digits", "more", "--train=500"}, options);
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(testing::StartsWith("more/train_lmdb: "), HasSubstr("ulimit -f"))));
  EXPECT_FALSE(std::filesystem::exists(job.folder() / "more"));
}

// If memory is too small for the program itself, its loader exits with 127.
TEST(DatasetTest, NoLimitOfMemoryIsAnErrorOfTheProgram) {
  const Job job;
  RunOptions options = job.options();
  for (size_t mib = 80; mib <= 200; mib += 20) {
    options.memory_limit = mib << 20;
    const Outcome outcome = RunProgram({"dataset", "check", "data/train_lmdb"}, options);
    EXPECT_THAT(outcome.exit_code, testing::AnyOf(0, 81, 127)) << mib << " MiB: " << outcome.err;
  }
}

// A large set could leave hundreds of gigabytes.
TEST(DatasetTest, ASignalLeavesNothingOfAHalfMadeSet) {
  const Job job;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;  // e.g. in a shell's background job
    RunningProgram program({"dataset", "digits", "half", "--train=100000000"}, job.options());
    const std::string half = job.folder() / "half";
    const auto begun = [&] {
      return std::filesystem::exists(half) && !std::filesystem::is_empty(half);
    };
    EXPECT_TRUE(Await(begun));
    program.Signal(signal);
    const Outcome outcome = program.Wait();
    EXPECT_EQ(outcome.signal, signal) << outcome.err;
    EXPECT_TRUE(std::filesystem::is_empty(half));
  }
}

TEST(DatasetTest, TheMeanOfATarFileIsThatOfItsDatabase) {
  const Job job;
  ASSERT_EQ(Dataset(job, {"convert", "data/train_lmdb", "set.tar"}).exit_code, 0);
  const Outcome tar = Dataset(job, {"mean", "set.tar", "tar.mean"});
  EXPECT_EQ(tar.exit_code, 0) << tar.err;
  EXPECT_EQ(Dataset(job, {"mean", "data/train_lmdb", "lmdb.mean"}).exit_code, 0);
  const Outcome again = Dataset(job, {"mean", "data/test_lmdb", "lmdb.mean"});
  EXPECT_EQ(again.exit_code, 73);
  EXPECT_THAT(again.Errors(), ElementsAre(HasSubstr("--force to replace it")));
  EXPECT_EQ(Dataset(job, {"mean", "data/train_lmdb", "lmdb.mean", "--force"}).exit_code, 0);
  EXPECT_EQ(ReadText(job.folder() / "tar.mean"), ReadText(job.folder() / "lmdb.mean"));
  EXPECT_EQ(Dataset(job, {"pairs", "set.tar", "tar_pairs"}).exit_code, 0);
  EXPECT_EQ(Dataset(job, {"pairs", "data/train_lmdb", "lmdb_pairs"}).exit_code, 0);
  EXPECT_EQ(ReadText(job.folder() / "tar_pairs/data.mdb").size(),
            ReadText(job.folder() / "lmdb_pairs/data.mdb").size());
}

// --- --local_copy ---

class StageDataTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, StageDataTest, testing::Values("LMDB", "LEVELDB"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(StageDataTest, ARunFromACopyWritesTheSameSnapshotsAndRemovesTheCopy) {
  Job job(GetParam());
  job.Write();
  ASSERT_EQ(job.Train().exit_code, 0);
  const std::vector<std::string> names = job.Files("snap");
  ASSERT_GE(names.size(), 4u);
  std::vector<std::string> first;
  for (const std::string& name : names) first.push_back(ReadText(job.folder() / name));
  std::filesystem::create_directory(job.folder() / "local");
  const Outcome alone = job.Train({"--local_copy=local"});
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("and verified the checksum"));
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(ReadText(job.folder() / names[i]), first[i]) << names[i];
  }
  EXPECT_TRUE(std::filesystem::is_empty(job.folder() / "local"));
  const Outcome ranks = job.TrainAsProcess({"--local_copy=local", "--global_batch", "--ranks=2"});
  EXPECT_EQ(ranks.exit_code, 0) << ranks.err;
  EXPECT_THAT(ranks.err, testing::Not(HasSubstr("not copied")));
  EXPECT_TRUE(std::filesystem::is_empty(job.folder() / "local"));
}

TEST_P(StageDataTest, ARunWithoutRoomForACopyReadsTheDatabaseWhereItLies) {
  Job job(GetParam());
  job.Write();
  const Outcome outcome = job.Train({"--local_copy=nowhere"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("not copied to this machine (cannot make"));
}

TEST(StagedTarRunTest, ACompressedTarFileIsUnpackedAndTrainsAsTheOtherDoes) {
  Job job;
  job.Write();
  ASSERT_EQ(Dataset(job, {"convert", "data/train_lmdb", "set.tar"}).exit_code, 0);
  std::filesystem::create_directory(job.folder() / "local");
  const auto train = [&](const std::string& stage) {
    return job.Train({"--set", "layer[digits,TRAIN].data_param.backend=TAR", "--set",
                      "layer[digits,TRAIN].data_param.source=set.tar", "--local_copy=" + stage});
  };
  const Outcome plain = train("off");
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  const std::string name = job.Files("snap").front(), want = ReadText(job.folder() / name);
  // The compressed file keeps the old name, because snapshots have it.
  const std::string pack =
      "cd '" + (job.folder() / "") + "' && gzip set.tar && mv set.tar.gz set.tar";
  ASSERT_EQ(std::system(pack.c_str()), 0);
  const Outcome packed = train("off");
  EXPECT_EQ(packed.exit_code, 65) << packed.err;
  EXPECT_THAT(packed.err,
              HasSubstr("or let the run unpack a copy: trainer train --local_copy=DIR"));
  const Outcome staged = train("local");
  EXPECT_EQ(staged.exit_code, 0) << staged.err;
  EXPECT_TRUE(ReadText(job.folder() / name) == want);
  EXPECT_TRUE(std::filesystem::is_empty(job.folder() / "local"));
}

TEST(FinishedRunTest, ARunThatIsOverCopiesNothing) {
  Job job;
  job.Write();
  ASSERT_EQ(job.Train().exit_code, 0);
  std::filesystem::create_directory(job.folder() / "local");
  const Outcome outcome = job.Train({"--local_copy=local", "--keep_local_copy", "--resume=auto"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the run is finished, nothing to do"));
  EXPECT_TRUE(std::filesystem::is_empty(job.folder() / "local"));
}

// --- doctor ---

TEST(DoctorTest, TellsRatesAndAdvice) {
  Job job;
  job.Write();
  const Outcome outcome = RunHere(
      {"doctor", "--solver=solver.prototxt", "--iterations=2", "--seconds=1"}, job.options());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part :
       {"machine: 1 cores used", "iteration without waiting: ", "file system", "net needs",
        "read cold", "data/train_lmdb", "advice, largest gain first:"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
  EXPECT_THAT(job.Files("snap"), IsEmpty());
}

}  // namespace
}  // namespace trainer
