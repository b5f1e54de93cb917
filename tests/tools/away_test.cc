// Disks and file servers that go away in the midst of an epoch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "job.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string TextOfAway(int error) { return std::generic_category().message(error); }

constexpr int kHang = -1;  // in the place of an error: calls do not come back

// One source of records, and how it is read.
struct Kind {
  const char* name;
  std::string type, data;  // of the data layer, and its own message
  std::string part;        // of the path of what goes away
  int error = ESTALE;      // with which calls fail meanwhile
  bool network = false;
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

std::vector<Kind> Kinds() {
  const std::string size = " batch_size: 4", random = size + " shuffle: true";
  const std::string lmdb = "data_param { backend: LMDB source: 'data/train_lmdb'";
  return {
      {"Lmdb", "Data", lmdb + size + " }", "data/train_lmdb/data.mdb", EIO},
      {"LmdbInRandomOrder", "Data", lmdb + random + " shuffle_window: 16 }",
       "data/train_lmdb/data.mdb", ENOENT},
      {"LmdbBehindANetwork", "Data", lmdb + size + " }", "data/train_lmdb/data.mdb", ESTALE, true},
      {"LevelDb", "Data", "data_param { backend: LEVELDB source: 'data/leveldb'" + size + " }",
       "data/leveldb/"},
      {"Tar", "Data", "data_param { backend: TAR source: 'data/digits.tar'" + size + " }",
       "data/digits.tar"},
      {"Images", "ImageData",
       "image_data_param { source: 'list' root_folder: 'pictures/'" + random + " }", ".ppm",
       EHOSTUNREACH},
      {"Rows", "HDF5Data", "hdf5_data_param { source: 'data/rows'" + random + " }", ".h5"},
      {"Windows", "WindowData",
       "window_data_param { source: 'windows' fg_fraction: 0.5" + size +
           " } transform_param { crop_size: 3 mirror: true }",
       ".ppm", ETIMEDOUT},
  };
}

// A run that reads the records of one kind.
class AwayJob {
 public:
  explicit AwayJob(const Kind& kind) : kind_(kind) {
    MakeSet();
    job_.net =
        Join("layer { name: 'd' top: 'data' top: 'label' type: '", kind.type, "' ", kind.data,
             " }\nlayer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' "
             "inner_product_param { num_output: 40 weight_filler { type: 'xavier' } } }\n"
             "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' "
             "}\n");
    Solve("snap");
    undisturbed_ = job_.options();
    undisturbed_.in_step = true;
    options_ = undisturbed_;
    for (const std::string& variable :
         {std::string("LD_PRELOAD=" TRAINER_FAULTY_IO),
          std::string("ASAN_OPTIONS=verify_asan_link_order=0"), "FAULTY_IO_PATH=" + kind.part,
          "FAULTY_IO_SWITCH=" + Switch(),
          "FAULTY_IO_ERROR=" + (kind.error == kHang ? "hang" : Join(kind.error)),
          std::string("FAULTY_IO_NETWORK=") + (kind.network ? "1" : "")}) {
      options_.env.push_back(variable);
    }
  }

  void GoAway() const { WriteText(Switch(), ""); }
  // The same while the data are read; returns when mapped pages are gone, too.
  void GoAwayInMidRun() const {
    GoAway();
    if (kind_.data.find("LMDB") == std::string::npos) return;
    EXPECT_TRUE(Await([&] { return std::filesystem::exists(Switch() + ".pages"); }));
  }
  void ComeBack() const { std::filesystem::remove(Switch()); }

  // The weights after all iterations of a run without a fault.
  std::string Undisturbed() {
    Solve("whole");
    EXPECT_EQ(job_.Train().exit_code, 0);
    return Weights("whole");
  }
  std::string Weights(const std::string& prefix) const {
    return ReadText(job_.folder() / Join(prefix, "_iter_", kIterations, ".caffemodel"));
  }

  std::string pictures() const { return job_.folder() / "pictures"; }
  Job& job() { return job_; }
  const RunOptions& options() const { return options_; }
  // Of a run whose reads are the system's own.
  const RunOptions& undisturbed_options() const { return undisturbed_; }

 private:
  // Many more than are written ahead of the log's reader.
  static constexpr int kIterations = 3000;

  std::string Switch() const { return job_.folder() / "away"; }

  // The rate is too small for the loss to grow.
  void Solve(const std::string& prefix) {
    job_.solver = Join(
        "net: 'net.prototxt' base_lr: 1e-7 lr_policy: 'fixed' momentum: 0.9 "
        "display: 10 random_seed: 3 max_iter: ",
        kIterations, " snapshot_prefix: '", prefix, "'\n");
    job_.Write();
  }

  void Convert(const std::string& from, const std::string& to) const {
    const Outcome made =
        RunProgram({"dataset", "convert", from, to, "--backend=leveldb"}, job_.options());
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }

  void MakeSet() const {
    const std::string name = kind_.name;
    if (name == "LevelDb") Convert("data/train_lmdb", "data/leveldb");
    if (name == "Tar") Convert("data/train_lmdb", "data/digits.tar");
    if (name == "Rows") {
      Convert("data/train_lmdb", "data/one.h5");
      Convert("data/test_lmdb", "data/two.h5");
      WriteText(job_.folder() / "data/rows", "data/one.h5\ndata/two.h5\n");
    }
    if (kind_.part == ".ppm") MakePictures();
  }

  void MakePictures() const {
    constexpr int kPictures = 40;
    std::string list;
    std::filesystem::create_directory(pictures());
    for (int i = 0; i < kPictures; ++i) {
      std::string pixels;
      for (int p = 0; p < 60; ++p) pixels += static_cast<char>(i * 31 + p * 7);
      const std::string name = Join("p", i, ".ppm");
      WriteText(pictures() + "/" + name, "P6 5 4 255\n" + pixels);
      list += Join(name, " ", i, "\n");
    }
    WriteText(job_.folder() / "list", list);
    WriteText(job_.folder() / "windows",
              "# 0\npictures/p1.ppm\n3\n4\n5\n2\n1 0.9 0 0 2 2\n0 0.1 2 0 4 1\n"
              "# 1\npictures/p2.ppm\n3\n4\n5\n2\n2 0.8 1 1 4 3\n0 0.1 0 0 3 3\n");
  }

  Kind kind_;
  Job job_;
  RunOptions undisturbed_, options_;
};

// The run has ended with a snapshot, and one that goes on from it ends like one without a fault.
void ExpectSavedAndGoesOn(AwayJob* away) {
  away->ComeBack();
  EXPECT_THAT(away->job().Files("snap_iter_"), SizeIs(2));
  EXPECT_EQ(away->job().Train({"--resume=auto"}).exit_code, 0);
  EXPECT_TRUE(away->Weights("snap") == away->Undisturbed());
}

class AwayTest : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Of, AwayTest, testing::ValuesIn(Kinds()),
                         [](const auto& one) { return one.param.name; });

TEST_P(AwayTest, WhatComesBackInTimeIsReadOnAsIfNothingHadHappened) {
  AwayJob away(GetParam());
  Program program(away.job().TrainCommand(), away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAwayInMidRun();
  EXPECT_THAT(program.WaitForLine("reading is tried again"),
              AllOf(HasSubstr(GetParam().part), HasSubstr(TextOfAway(GetParam().error)),
                    HasSubstr("; reading is tried again for up to 300 s (--io_timeout)")));
  away.ComeBack();
  program.WaitForLine("Reading goes on after");
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(away.Weights("snap") == away.Undisturbed());
}

TEST_P(AwayTest, WhatDoesNotComeBackEndsTheRunWithASnapshotThatGoesOn) {
  AwayJob away(GetParam());
  Program program(away.job().TrainCommand({"--io_timeout=1"}), away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAwayInMidRun();
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr(GetParam().part), HasSubstr("it was tried again for 1 s"),
                                HasSubstr(". The run is saved at iteration "),
                                HasSubstr("--resume=auto goes on from there"))));
  ExpectSavedAndGoesOn(&away);
}

Kind KindOfAway(const std::string& name) {
  for (const Kind& kind : Kinds()) {
    if (kind.name == name) return kind;
  }
  return {};
}

class HangingReadTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, HangingReadTest,
                         testing::Values("LmdbBehindANetwork", "Tar", "Images", "Rows"),
                         [](const auto& one) { return one.param; });

TEST_P(HangingReadTest, EndsTheRunWithASnapshotThatGoesOn) {
  Kind kind = KindOfAway(GetParam());
  kind.error = kHang;
  AwayJob away(kind);
  Program program(away.job().TrainCommand({"--io_timeout=1"}), away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAwayInMidRun();
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr("a read has not come back within 1 s (--io_timeout)"),
                                HasSubstr(". The run is saved at iteration "))));
  ExpectSavedAndGoesOn(&away);
}

// The read holds the HDF5 library, with which the snapshot was to be written.
TEST(AwayRunTest, HangingRowsLeaveASnapshotInTheOtherFormat) {
  Kind kind = KindOfAway("Rows");
  kind.error = kHang;
  kind.part = "more/rows.h5";
  AwayJob away(kind);
  // A file that stays open, and of which the library keeps a part in memory only.
  for (const std::vector<std::string>& made :
       {std::vector<std::string>{"dataset", "digits", "more", "--train=4000", "--test=1"},
        {"dataset", "convert", "more/train_lmdb", "more/rows.h5"}}) {
    ASSERT_EQ(RunProgram(made, away.job().options()).exit_code, 0);
  }
  WriteText(away.job().folder() / "data/rows", "more/rows.h5\n");
  Program program(away.job().TrainCommand({"--io_timeout=1", "--set=snapshot_format=HDF5"}),
                  away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAwayInMidRun();
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("is written in the binary format"));
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(". The run is saved at iteration ")));
  ExpectSavedAndGoesOn(&away);
}

// What is away before the run begins.
class HangingStartTest : public testing::TestWithParam<Kind> {};

std::vector<Kind> KindsAwayAtTheStart() {
  std::vector<Kind> kinds = Kinds();
  for (const auto& [name, part] :
       {std::pair("TheSolver", "solver.prototxt"), std::pair("TheNet", "net.prototxt"),
        std::pair("TheList", "list")}) {
    Kind kind = *std::ranges::find(kinds, std::string("Images"), &Kind::name);
    kind.name = name;
    kind.part = part;
    kinds.push_back(kind);
  }
  for (Kind& kind : kinds) kind.error = kHang;
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(Of, HangingStartTest, testing::ValuesIn(KindsAwayAtTheStart()),
                         [](const auto& one) { return one.param.name; });

TEST_P(HangingStartTest, EndsTheRunBeforeItBegins) {
  AwayJob away(GetParam());
  away.GoAway();
  const Outcome outcome = RunProgram(away.job().TrainCommand({"--io_timeout=1"}), away.options());
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(HasSubstr("has not come back within 1 s (--io_timeout)")));
  away.ComeBack();
  EXPECT_THAT(away.job().Files("."), IsEmpty());
}

TEST(AwayRunTest, OfSeveralRanksOneSaysThatTheFirstRecordHangs) {
  Kind kind = KindOfAway("Images");
  kind.error = kHang;
  AwayJob away(kind);
  away.GoAway();
  const Outcome outcome =
      RunProgram(away.job().TrainCommand({"--ranks=2", "--io_timeout=1"}), away.options());
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(HasSubstr("has not come back within 1 s (--io_timeout)")));
  away.ComeBack();
  EXPECT_THAT(away.job().Files("."), IsEmpty());
}

// They meet every 40 iterations, and lose their data in between.
TEST(AwayRunTest, RanksThatSeldomMeetSaveWhereTheyMeet) {
  AwayJob away(KindOfAway("Tar"));
  const std::vector<std::string> ranks = {"--ranks=2", "--strategy=local", "--set",
                                          "strategy_param.period=40"};
  std::vector<std::string> flags = ranks;
  flags.push_back("--io_timeout=1");
  Program program(away.job().TrainCommand(flags), away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAwayInMidRun();
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(". The run is saved at iteration ")));
  away.ComeBack();
  EXPECT_THAT(away.job().Files("snap_iter_"), SizeIs(2));
  flags = ranks;
  flags.push_back("--resume=auto");
  EXPECT_EQ(away.job().Train(flags).exit_code, 0);
}

TEST(AwayRunTest, ASignalEndsTheWaitAndTheRunIsSavedAsByAnyOther) {
  AwayJob away(KindOfAway("Tar"));
  Program program(away.job().TrainCommand(), away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAwayInMidRun();
  program.WaitForLine("reading is tried again");
  program.Signal(SIGTERM);
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.Errors(), IsEmpty());
  EXPECT_THAT(away.job().Files("snap_iter_"), SizeIs(2));
}

TEST(AwayRunTest, WithoutPatienceTheRunIsSavedAtOnce) {
  AwayJob away(KindOfAway("Tar"));
  Program program(away.job().TrainCommand({"--io_timeout=0"}), away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAwayInMidRun();
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(". The run is saved at iteration ")));
  EXPECT_THAT(away.job().Files("snap_iter_"), SizeIs(2));
}

// The data of one of several ranks: all save and stop together.
TEST(AwayRunTest, OfSeveralRanksAllSaveAndStop) {
  AwayJob away(KindOfAway("Images"));
  Program program(away.job().TrainCommand({"--ranks=2", "--io_timeout=1"}), away.options());
  program.WaitForLine("Iteration 100 (");
  away.GoAwayInMidRun();
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(". The run is saved at iteration ")));
  EXPECT_THAT(away.job().Files("snap_iter_"), SizeIs(2));
  away.ComeBack();
  EXPECT_EQ(away.job().Train({"--resume=auto", "--ranks=2"}).exit_code, 0);
}

TEST(AwayRunTest, AFolderThatIsMovedAwayAndBackIsWaitedFor) {
  AwayJob away(KindOfAway("Images"));
  const std::string folder = away.pictures();
  Program program(away.job().TrainCommand(), away.undisturbed_options());
  program.WaitForLine("Iteration 100 (");
  std::filesystem::rename(folder, folder + "_away");
  EXPECT_THAT(program.WaitForLine("reading is tried again"), HasSubstr(TextOfAway(ENOENT)));
  std::filesystem::rename(folder + "_away", folder);
  program.WaitForLine("Reading goes on after");
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(away.Weights("snap") == away.Undisturbed());
}

// An empty folder is left, as of a mount that is gone.
TEST(AwayRunTest, AFileSystemThatIsNotMountedForAWhileIsWaitedFor) {
  AwayJob away(KindOfAway("Images"));
  const std::string folder = away.pictures(), full = folder + "_full";
  std::filesystem::rename(folder, full);
  std::filesystem::create_directory(folder);
  if (mount(full.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  Program program(away.job().TrainCommand(), away.undisturbed_options());
  program.WaitForLine("Iteration 100 (");
  ASSERT_EQ(umount2(folder.c_str(), MNT_DETACH), 0);
  program.WaitForLine("reading is tried again");
  ASSERT_EQ(mount(full.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr), 0);
  program.WaitForLine("Reading goes on after");
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(away.Weights("snap") == away.Undisturbed());
  umount2(folder.c_str(), MNT_DETACH);
}

// One that the list names and nobody has seen is missing: no patience brings it.
TEST(AwayRunTest, AFileThatWasNeverThereIsMissingAtOnce) {
  AwayJob away(KindOfAway("Images"));
  std::filesystem::remove(away.pictures() + "/p17.ppm");
  const Outcome outcome = away.job().Train();
  EXPECT_EQ(outcome.exit_code, 66) << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("tried again")));
}

}  // namespace
}  // namespace trainer
