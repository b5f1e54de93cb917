// Reads that fail before a run or in the middle of an epoch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "in_process.h"
#include "job.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string TextOf(int error) { return std::generic_category().message(error); }

// A source of records, and the way it is read.
struct Kind {
  const char* name;
  std::string type, data;  // of the data layer, and its message
  std::string part;        // of the paths of files that cannot be read
  std::string named;       // in the error
  int error = ESTALE;
  bool network = false;
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

std::vector<Kind> Kinds() {
  const std::string size = " batch_size: 4", random = size + " shuffle: true";
  const std::string lmdb = "data_param { backend: LMDB source: 'data/train_lmdb'";
  const std::string file = "data/train_lmdb/data.mdb", folder = "data/train_lmdb";
  return {
      {"Lmdb", "Data", lmdb + size + " }", file, folder, EIO},
      {"LmdbInRandomOrder", "Data", lmdb + random + " shuffle_window: 16 }", file, folder, ENOENT},
      {"LmdbBehindANetwork", "Data", lmdb + size + " }", file, folder, ESTALE, true},
      {"LevelDb", "Data", "data_param { backend: LEVELDB source: 'data/leveldb'" + size + " }",
       "data/leveldb/", "data/leveldb"},
      {"Tar", "Data", "data_param { backend: TAR source: 'data/digits.tar'" + size + " }",
       "data/digits.tar", "data/digits.tar"},
      {"Images", "ImageData",
       "image_data_param { source: 'list' root_folder: 'pictures/'" + random + " }", ".ppm",
       "pictures/p", EHOSTUNREACH},
      {"Rows", "HDF5Data", "hdf5_data_param { source: 'data/rows'" + random + " }", ".h5", ".h5"},
      {"Windows", "WindowData",
       "window_data_param { source: 'windows' fg_fraction: 0.5" + size +
           " } transform_param { crop_size: 3 mirror: true }",
       ".ppm", "pictures/p", ETIMEDOUT},
  };
}

// A run that reads the records of one kind.
class FailingJob {
 public:
  explicit FailingJob(const Kind& kind) : kind_(kind) {
    MakeSet();
    job_.net =
        Join("layer { name: 'd' top: 'data' top: 'label' type: '", kind.type, "' ", kind.data,
             " }\nlayer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' "
             "inner_product_param { num_output: 40 weight_filler { type: 'xavier' } } }\n"
             "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' "
             "}\n");
    Solve("snap");
    options_ = job_.options();
    options_.in_step = true;
    for (const std::string& variable :
         {std::string("LD_PRELOAD=" TRAINER_FAULTY_IO),
          std::string("ASAN_OPTIONS=verify_asan_link_order=0"), "FAULTY_IO_PATH=" + kind.part,
          "FAULTY_IO_SWITCH=" + Switch(), "FAULTY_IO_ERROR=" + Join(kind.error),
          std::string("FAULTY_IO_NETWORK=") + (kind.network ? "1" : "")}) {
      options_.env.push_back(variable);
    }
  }

  void StartFailing() const { WriteText(Switch(), ""); }
  void StopFailing() const { std::filesystem::remove(Switch()); }

  // Returns the weights after all iterations of a run without a fault.
  std::string Undisturbed() {
    Solve("whole");
    EXPECT_EQ(job_.Train().exit_code, 0);
    return Weights("whole");
  }
  std::string Weights(const std::string& prefix) const {
    return ReadText(job_.folder() / Join(prefix, "_iter_", kIterations, ".caffemodel"));
  }

  std::string pictures() const { return job_.folder() / "pictures"; }
  const Job& job() const { return job_; }
  const RunOptions& options() const { return options_; }

 private:
  // The run has many more iterations than it can write ahead of the log's reader.
  static constexpr int kIterations = 3000;

  std::string Switch() const { return job_.folder() / "failing"; }

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
        RunHere({"dataset", "convert", from, to, "--backend=leveldb"}, job_.options());
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
  RunOptions options_;
};

// Trains until the reads fail in the middle of the run.
Outcome TrainUntilReadsFail(const FailingJob& failing, const std::vector<std::string>& flags = {}) {
  RunningProgram program(failing.job().TrainCommand(flags), failing.options());
  program.WaitForLine("Iteration 100 (");
  failing.StartFailing();
  return program.Wait();
}

std::vector<Kind> KindsWithout(const std::string& name) {
  std::vector<Kind> kinds = Kinds();
  std::erase_if(kinds, [&](const Kind& kind) { return kind.name == name; });
  return kinds;
}

// A small LevelDB is mapped as a whole, so no later call can fail (storage/fault_guard_test.cc).
class ReadErrorTest : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Of, ReadErrorTest, testing::ValuesIn(KindsWithout("LevelDb")),
                         [](const auto& one) { return one.param.name; });

TEST_P(ReadErrorTest, EndsTheRunWith74AndASnapshotThatGoesOn) {
  FailingJob failing(GetParam());
  const Outcome outcome = TrainUntilReadsFail(failing);
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr(GetParam().named), HasSubstr(TextOf(GetParam().error)),
                                HasSubstr(". A snapshot was saved at iteration "),
                                HasSubstr("resume from it with --resume=auto"))));
  failing.StopFailing();
  EXPECT_THAT(failing.job().Files("snap_iter_"), SizeIs(2));
  EXPECT_EQ(failing.job().Train({"--resume=auto"}).exit_code, 0);
  EXPECT_TRUE(failing.Weights("snap") == failing.Undisturbed());
}

Kind KindOf(const std::string& name) {
  const std::vector<Kind> kinds = Kinds();
  return *std::ranges::find(kinds, name, &Kind::name);
}

std::vector<Kind> KindsAtTheStart() {
  std::vector<Kind> kinds = Kinds();
  for (const auto& [name, part] :
       {std::pair("TheSolver", "solver.prototxt"), std::pair("TheNet", "net.prototxt"),
        std::pair("TheList", "list")}) {
    Kind kind = KindOf("Images");
    kind.name = name;
    kind.part = kind.named = part;
    kinds.push_back(kind);
  }
  for (Kind& kind : kinds) kind.error = EIO;
  return kinds;
}

class FirstReadErrorTest : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Of, FirstReadErrorTest, testing::ValuesIn(KindsAtTheStart()),
                         [](const auto& one) { return one.param.name; });

TEST_P(FirstReadErrorTest, EndsTheRunWith74BeforeItBegins) {
  const FailingJob failing(GetParam());
  failing.StartFailing();
  const Outcome outcome = RunProgram(failing.job().TrainCommand(), failing.options());
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr(GetParam().named), HasSubstr(TextOf(EIO)))));
  failing.StopFailing();
  EXPECT_THAT(failing.job().Files("."), IsEmpty());
}

// The ranks synchronise every 40 iterations, and lose their data in between.
TEST(ReadErrorOfRanksTest, RanksThatSeldomMeetSaveWhereTheyMeet) {
  const FailingJob failing(KindOf("Tar"));
  std::vector<std::string> flags = {"--ranks=2", "--strategy=local", "--set",
                                    "strategy_param.period=40"};
  const Outcome outcome = TrainUntilReadsFail(failing, flags);
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(". A snapshot was saved at iteration ")));
  failing.StopFailing();
  EXPECT_THAT(failing.job().Files("snap_iter_"), SizeIs(2));
  flags.emplace_back("--resume=auto");
  EXPECT_EQ(failing.job().TrainAsProcess(flags).exit_code, 0);
}

// One rank loses its data, and all ranks save and stop together.
TEST(ReadErrorOfRanksTest, OfSeveralRanksAllSaveAndStop) {
  const FailingJob failing(KindOf("Images"));
  const Outcome outcome = TrainUntilReadsFail(failing, {"--ranks=2"});
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(". A snapshot was saved at iteration ")));
  EXPECT_THAT(failing.job().Files("snap_iter_"), SizeIs(2));
  failing.StopFailing();
  EXPECT_EQ(failing.job().TrainAsProcess({"--resume=auto", "--ranks=2"}).exit_code, 0);
}

TEST(MissingFileTest, OneThatTheListNamesEndsTheRunWith66) {
  const FailingJob failing(KindOf("Images"));
  std::filesystem::remove(failing.pictures() + "/p17.ppm");
  EXPECT_EQ(failing.job().Train().exit_code, 66);
}

}  // namespace
}  // namespace trainer
