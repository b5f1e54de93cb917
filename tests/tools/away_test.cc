// Disks and file servers that go away in the midst of an epoch, and locks that cannot be had.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "data/every_source.h"
#include "job.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kRecords = 40;

std::string TextOf(int error) { return std::generic_category().message(error); }

// One source of records, and how it is read.
struct Kind {
  const char* name;
  std::string data;  // the data layer's own message, of %d for the folder
  const char* part;  // of the path of what goes away
  bool network = false;
  int error = ESTALE;  // with which calls fail meanwhile
};

std::vector<Kind> Kinds() {
  const std::string batch = "batch_size: 4 shuffle: true ";
  return {
      {"Lmdb", "Data data_param { backend: LMDB source: '%dLMDB' batch_size: 4 }", "LMDB", false,
       EIO},
      {"LmdbInRandomOrder",
       "Data data_param { backend: LMDB source: '%dLMDB' shuffle_window: 8 " + batch + "}",
       "LMDB/data.mdb", false, ENOENT},
      {"LmdbBehindANetwork", "Data data_param { backend: LMDB source: '%dLMDB' batch_size: 4 }",
       "LMDB/data.mdb", true},
      {"LevelDb", "Data data_param { backend: LEVELDB source: '%dLEVELDB' batch_size: 4 }",
       "LEVELDB/", false},
      {"Tar", "Data data_param { backend: TAR source: '%dtar-{0..1}.tar' batch_size: 4 }", "/tar-",
       false},
      {"Images", "ImageData image_data_param { source: '%dimages' root_folder: '%d' " + batch + "}",
       ".ppm", false, EHOSTUNREACH},
      {"Rows", "HDF5Data hdf5_data_param { source: '%drows' " + batch + "}", ".h5"},
      {"Windows",
       "WindowData window_data_param { source: '%dwindows' batch_size: 4 fg_fraction: 0.5 } "
       "transform_param { crop_size: 3 mirror: true }",
       ".ppm", false, ETIMEDOUT},
  };
}

// A run that reads the records of one kind.
class AwayJob {
 public:
  explicit AwayJob(const Kind& kind) : source_(kRecords) {
    source_.MakeWindows(4);
    CopyPictures();
    std::string data = kind.data;
    for (size_t at; (at = data.find("%d")) != std::string::npos;) {
      data.replace(at, 2, source_.folder());
    }
    const std::string type = data.substr(0, data.find(' '));
    job_.net = "layer { name: 'd' top: 'x' top: 'y' type: '" + type + "' " +
               data.substr(type.size()) +
               " }\nlayer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' "
               "inner_product_param { num_output: 40 weight_filler { type: 'xavier' } } }\n"
               "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' }\n";
    Solve(kIterations, "snap");
    options_ = job_.options();
    options_.env.push_back("LD_PRELOAD=" TRAINER_FAULTY_IO);
    options_.env.push_back("ASAN_OPTIONS=verify_asan_link_order=0");
    options_.env.push_back("FAULTY_IO_PATH=" + std::string(kind.part));
    options_.env.push_back("FAULTY_IO_SWITCH=" + Switch());
    options_.env.push_back(Join("FAULTY_IO_ERROR=", kind.error));
    if (kind.network) options_.env.push_back("FAULTY_IO_NETWORK=1");
  }

  // The rate is too small for a difference to vanish, and for the loss to grow.
  void Solve(int iterations, const std::string& prefix) {
    job_.solver = Join(
        "net: 'net.prototxt' base_lr: 1e-7 lr_policy: 'fixed' momentum: 0.9 "
        "display: 100 random_seed: 3 max_iter: ",
        iterations, " snapshot_prefix: '", prefix, "'\n");
    job_.Write();
  }

  void GoAway() const { WriteBytes(Switch(), ""); }
  void ComeBack() const { std::filesystem::remove(Switch()); }

  // The weights after all iterations of a run without a fault.
  std::string Undisturbed() {
    Solve(kIterations, "whole");
    EXPECT_EQ(job_.Train().exit_code, 0);
    return Weights("whole");
  }
  std::string Weights(const std::string& prefix) const {
    return ReadText(job_.folder() / Join(prefix, "_iter_", kIterations, ".caffemodel"));
  }

  std::string pictures() const { return source_.folder() + "pictures"; }
  Job& job() { return job_; }
  const RunOptions& options() const { return options_; }

  static constexpr int kIterations = 20000;

 private:
  void CopyPictures() const {
    std::filesystem::create_directory(pictures());
    for (int i = 0; i < kRecords; ++i) {
      const std::string name = Join("p", i, ".ppm");
      std::filesystem::copy(source_.folder() + name, pictures() + "/" + name);
    }
  }
  std::string Switch() const { return job_.folder() / "away"; }

  EverySource source_;
  Job job_;
  RunOptions options_;
};

class AwayTest : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Of, AwayTest, testing::ValuesIn(Kinds()),
                         [](const auto& one) { return one.param.name; });

TEST_P(AwayTest, WhatComesBackInTimeIsReadOnAsIfNothingHadHappened) {
  AwayJob away(GetParam());
  Program program(away.job().TrainCommand(), away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAway();
  EXPECT_THAT(program.WaitForLine("reading is tried again"),
              AllOf(HasSubstr(GetParam().part), HasSubstr(TextOf(GetParam().error)),
                    HasSubstr("; reading is tried again for up to 300 s (--io_timeout)")));
  away.ComeBack();
  program.WaitForLine("Reading goes on after");
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(away.Weights("snap"), away.Undisturbed());
}

TEST_P(AwayTest, WhatDoesNotComeBackEndsTheRunWithASnapshotThatGoesOn) {
  AwayJob away(GetParam());
  Program program(away.job().TrainCommand({"--io_timeout=1"}), away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAway();
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr(GetParam().part), HasSubstr("it was tried again for 1 s"),
                                HasSubstr(". The run is saved at iteration "),
                                HasSubstr("--resume=auto goes on from there"))));
  away.ComeBack();
  EXPECT_THAT(away.job().Files("snap_iter_"), SizeIs(2));
  EXPECT_EQ(away.job().Train({"--resume=auto"}).exit_code, 0);
  EXPECT_EQ(away.Weights("snap"), away.Undisturbed());
}

Kind KindOf(const std::string& name) {
  for (const Kind& kind : Kinds()) {
    if (kind.name == name) return kind;
  }
  return {};
}

TEST(AwayRunTest, ASignalEndsTheWaitAndTheRunIsSavedAsByAnyOther) {
  AwayJob away(KindOf("Tar"));
  Program program(away.job().TrainCommand(), away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAway();
  program.WaitForLine("reading is tried again");
  program.Signal(SIGTERM);
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.Errors(), IsEmpty());
  EXPECT_THAT(away.job().Files("snap_iter_"), SizeIs(2));
}

TEST(AwayRunTest, WithoutPatienceTheRunIsSavedAtOnce) {
  AwayJob away(KindOf("Tar"));
  Program program(away.job().TrainCommand({"--io_timeout=0"}), away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAway();
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(". The run is saved at iteration ")));
  EXPECT_THAT(away.job().Files("snap_iter_"), SizeIs(2));
}

// The data of one of several ranks: all save and stop together.
TEST(AwayRunTest, OfSeveralRanksAllSaveAndStop) {
  AwayJob away(KindOf("Images"));
  Program program(away.job().TrainCommand({"--ranks=2", "--io_timeout=1"}), away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAway();
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(". The run is saved at iteration ")));
  EXPECT_THAT(away.job().Files("snap_iter_"), SizeIs(2));
  away.ComeBack();
  EXPECT_EQ(away.job().Train({"--resume=auto", "--ranks=2"}).exit_code, 0);
}

// A list of images in a folder of their own.
Kind ImagesInAFolder() {
  Kind kind = KindOf("Images");
  kind.data = Edited(kind.data, "root_folder: '%d'", "root_folder: '%dpictures/'");
  return kind;
}

TEST(AwayRunTest, AFolderThatIsMovedAwayAndBackIsWaitedFor) {
  AwayJob away(ImagesInAFolder());
  const std::string folder = away.pictures();
  Program program(away.job().TrainCommand(), away.job().options());
  program.WaitForLine("Iteration 100 (");
  std::filesystem::rename(folder, folder + "_away");
  EXPECT_THAT(program.WaitForLine("reading is tried again"), HasSubstr(TextOf(ENOENT)));
  std::filesystem::rename(folder + "_away", folder);
  program.WaitForLine("Reading goes on after");
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(away.Weights("snap"), away.Undisturbed());
}

// An empty folder is left, as of a mount that is gone.
TEST(AwayRunTest, AFileSystemThatIsNotMountedForAWhileIsWaitedFor) {
  AwayJob away(ImagesInAFolder());
  const std::string folder = away.pictures(), full = folder + "_full";
  std::filesystem::rename(folder, full);
  std::filesystem::create_directory(folder);
  if (mount(full.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  Program program(away.job().TrainCommand(), away.job().options());
  program.WaitForLine("Iteration 100 (");
  ASSERT_EQ(umount2(folder.c_str(), MNT_DETACH), 0);
  program.WaitForLine("reading is tried again");
  ASSERT_EQ(mount(full.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr), 0);
  program.WaitForLine("Reading goes on after");
  const Outcome outcome = program.Wait();
  umount2(folder.c_str(), MNT_DETACH);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(away.Weights("snap"), away.Undisturbed());
}

// One that the list names and nobody has seen is missing: no patience brings it.
TEST(AwayRunTest, AFileThatWasNeverThereIsMissingAtOnce) {
  AwayJob away(ImagesInAFolder());
  std::filesystem::remove(away.pictures() + "/p17.ppm");
  const Outcome outcome = away.job().Train();
  EXPECT_EQ(outcome.exit_code, 66) << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("tried again")));
}

class LockTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Of, LockTest, testing::Values(EACCES, EROFS, ENOLCK, ENOSYS, EAGAIN),
                         [](const auto& one) { return Join("Error", one.param); });

// Trains on an LMDB whose lock fails so.
Outcome TrainWithLock(Job& job, const std::string& lock, const std::vector<std::string>& flags) {
  job.Write();
  RunOptions options = job.options();
  options.env.push_back("LD_PRELOAD=" TRAINER_FAULTY_IO);
  options.env.push_back("ASAN_OPTIONS=verify_asan_link_order=0");
  options.env.push_back("FAULTY_IO_LOCK=" + lock);
  return RunProgram(job.TrainCommand(flags), options);
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST_P(LockTest, ThatCannotBeHadIsAWarningForEachDatabase) {
  Job job;
  const Outcome outcome = TrainWithLock(job, Join(GetParam()), {});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  // LMDB itself goes on without a lock on a file system that it finds read-only.
  const int warnings = GetParam() == EROFS ? 0 : 1;
  for (const char* database : {"data/train_lmdb", "data/test_lmdb"}) {
    EXPECT_EQ(Count(outcome.err, Join(database, ": no lock on lock.mdb (")), warnings)
        << outcome.err;
  }
  EXPECT_EQ(Count(outcome.err, TextOf(GetParam())), 2 * warnings);
}

TEST_P(LockTest, IsNotAskedForWithDbLockOff) {
  Job job;
  const Outcome outcome = TrainWithLock(job, Join(GetParam()), {"--db_lock=off"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("no lock on lock.mdb")));
}

TEST(HangingLockTest, EndsTheWaitWithASentence) {
  Job job;
  const Outcome outcome = TrainWithLock(job, "hang", {"--io_timeout=1"});
  ExpectRefused(job, outcome, 74, "net.prototxt:",
                "opening the database has not come back within 1 s (--io_timeout)");
  EXPECT_THAT(outcome.err, HasSubstr("--db_lock=off"));
}

}  // namespace
}  // namespace trainer
