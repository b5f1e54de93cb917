// The order of a training run, with fakes for ranks, the device and the batch system.

#include "trainer/run/training_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "datum.pb.h"
#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/temp_folder.h"
#include "support/thread_world.h"
#include "support/wrapped_device.h"
#include "trainer/base/process/host_info.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/run_card.h"
#include "trainer/storage/database_writer.h"
#include "trainer/storage/datum.h"

namespace trainer {
namespace {

using testing::_;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

constexpr char kNet[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param {
  shape { dim: 4 dim: 3 } shape { dim: 4 dim: 1 } data_filler { type: "gaussian" } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" top: "loss" }
)";

// Records when the device is created and destroyed.
class NotedDevice final : public WrappedDevice {
 public:
  explicit NotedDevice(std::vector<std::string>* events) : events_(*events) {
    events_.push_back("device");
  }
  ~NotedDevice() override { events_.push_back("device destroyed"); }

 private:
  std::vector<std::string>& events_;
};

class TrainingRunTest : public testing::Test {
 protected:
  TrainingRunTest() {
    folder_.Write("net.prototxt", kNet);
    WriteSolver(4);
    request_.solver.file = folder_ / "solver.prototxt";
    deps_.join = [](const RankOptions&, int) { return nullptr; };
    deps_.make_device = [this](const DeviceChoice&) {
      return std::make_unique<NotedDevice>(&events_);
    };
    deps_.scheduler.variable = [this](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::string() : found->second;
    };
    deps_.scheduler.run = [this](const std::vector<std::string>& words, std::chrono::milliseconds) {
      events_.push_back(JoinList(words, " "));
      const bool asks_state = words.back() == "%T";
      return CommandResult{0, asks_state ? "RUNNING\n" : "UNLIMITED\n", ""};
    };
  }

  void WriteSolver(int max_iter) const {
    folder_.Write("solver.prototxt",
                  Join("net: \"", folder_ / "net.prototxt", "\" snapshot_prefix: \"",
                       folder_ / "snap", "\" base_lr: 0.01 lr_policy: \"fixed\" display: 0 ",
                       "random_seed: 3 snapshot: 2 solver_mode: CPU max_iter: ", max_iter));
  }
  int RunOnce() { return TrainingRun(request_, nullptr, deps_).Run(); }
  bool Exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  const TempFolder folder_;
  std::vector<std::string> events_;
  std::map<std::string, std::string> variables_;
  TrainRequest request_;
  TrainingRunDeps deps_;
};

TEST_F(TrainingRunTest, ACallOutOfOrderThrows) {
  TrainingRun run(request_, nullptr, deps_);
  const auto refuses = [&](const std::function<void()>& call) {
    EXPECT_THAT(ErrorOf(call), Pair(ErrorCode::kInternal, HasSubstr("out of order")));
  };
  refuses([&] { run.Join(); });
  run.CopyData();
  refuses([&] { run.CopyData(); });
  refuses([&] { run.Configure(); });
  run.Join();
  refuses([&] { run.FindStart(); });
  run.Configure();
  refuses([&] { run.OpenDevice(); });
  EXPECT_TRUE(run.FindStart());
  refuses([&] { run.Connect(); });
  refuses([&] { run.Leave(SolveResult::kFinished); });
  run.OpenDevice();
  refuses([&] { run.Build(); });
  run.Connect();
  refuses([&] { run.Train(); });
  run.Build();
  EXPECT_EQ(run.Leave(run.Train()), 0);
  refuses([&] { run.Leave(SolveResult::kFinished); });
}

TEST_F(TrainingRunTest, AFinishedRunOpensNoDevice) {
  request_.start.resume = "auto";
  ASSERT_EQ(RunOnce(), 0);
  EXPECT_THAT(events_, ElementsAre("device", "device destroyed"));
  events_.clear();
  const LogCollector log;
  EXPECT_EQ(RunOnce(), 0);
  EXPECT_THAT(events_, IsEmpty());
  EXPECT_THAT(log.lines,
              Contains("Already at iteration 4 of 4: the run is finished, nothing to do"));
}

TEST_F(TrainingRunTest, AResumedRunStartsWhereTheSnapshotIs) {
  ASSERT_EQ(RunOnce(), 0);
  request_.start.snapshot = folder_ / "snap_iter_2.solverstate";
  TrainingRun run(request_, nullptr, deps_);
  run.CopyData();
  run.Join();
  run.Configure();
  ASSERT_TRUE(run.FindStart());
  run.OpenDevice();
  run.Connect();
  run.Build();
  EXPECT_EQ(run.solver().iter(), 2);
}

TEST_F(TrainingRunTest, HoldsTheLockUntilItLeaves) {
  TrainingRun run(request_, nullptr, deps_);
  run.CopyData();
  run.Join();
  run.Configure();
  EXPECT_FALSE(Exists(".snap.lock"));
  run.FindStart();
  EXPECT_TRUE(Exists(".snap.lock"));
  run.OpenDevice();
  run.Connect();
  run.Build();
  const SolveResult result = run.Train();
  EXPECT_TRUE(Exists(".snap.lock"));
  run.Leave(result);
  EXPECT_FALSE(Exists(".snap.lock"));
}

TEST_F(TrainingRunTest, DestroysTheDeviceBeforeItQueuesTheJobAgain) {
  variables_["SLURM_JOB_ID"] = "7";
  request_.stop.max_wall = "1s";  // less than the reserve for the last snapshot
  request_.stop.requeue = true;
  request_.stop.stop_exit_code = 9;
  WriteSolver(1000000);
  const LogCollector log;
  EXPECT_EQ(RunOnce(), 9);
  EXPECT_THAT(events_, ElementsAre("device", "device destroyed", "squeue -h -j 7 -o %T",
                                   "scontrol requeue 7"));
  EXPECT_THAT(log.lines, Contains(HasSubstr("The time limit stopped the run at iteration ")));
  EXPECT_THAT(log.lines, Contains("--requeue: Slurm job 7 is queued again"));
  EXPECT_THAT(log.lines, Not(Contains("Optimization Done.")));
}

TEST_F(TrainingRunTest, AFinishedRunIsNotQueuedAgain) {
  variables_["SLURM_JOB_ID"] = "7";
  request_.stop.requeue = true;
  EXPECT_EQ(RunOnce(), 0);
  EXPECT_THAT(events_, ElementsAre("device", "squeue -h -j 7 -o %L", "device destroyed"));
}

TEST_F(TrainingRunTest, WritesTheResolvedFileWithTheFirstSnapshot) {
  ASSERT_EQ(RunOnce(), 0);
  EXPECT_FALSE(Exists("snap_resolved.prototxt")) << "nothing was changed";
  request_.solver.set = {"base_lr=0.5"};
  request_.start.weights = folder_ / "missing.caffemodel";
  EXPECT_EQ(ErrorOf([&] { RunOnce(); }).first, ErrorCode::kNoInput);
  EXPECT_FALSE(Exists("snap_resolved.prototxt"));
  EXPECT_FALSE(Exists(".snap.lock"));
  request_.start.weights = "";
  ASSERT_EQ(RunOnce(), 0);
  EXPECT_THAT(ReadText(folder_ / "snap_resolved.prototxt"), HasSubstr("base_lr: 0.5"));
}

TEST_F(TrainingRunTest, WritesCountedClassWeightsIntoItsFiles) {
  const auto writer = CreateDb("LMDB", folder_ / "set");
  for (int i = 0; i < 8; ++i) {
    caffe::Datum datum = EmptyDatum(1, 1, 1);
    datum.set_data("x");
    datum.set_label(i == 5 ? 1 : 0);
    writer->Put(Join(i), datum.SerializeAsString());
  }
  writer->Commit();
  folder_.Write(
      "net.prototxt",
      Join("layer { name: \"d\" type: \"Data\" top: \"x\" top: \"y\" data_param { backend: ",
           "LMDB batch_size: 4 source: \"", folder_ / "set", "\" } }\n",
           "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"ip\" ",
           "inner_product_param { num_output: 2 } }\n",
           "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"y\" ",
           "top: \"loss\" loss_param { class_weight_power: 1 } }"));
  request_.monitor.run = folder_ / "run";
  ASSERT_EQ(RunOnce(), 0);
  for (const char* file : {"snap_resolved.prototxt", "run/solver.prototxt", "run/net.prototxt"}) {
    const std::string text = ReadText(folder_ / file);
    EXPECT_THAT(text, AllOf(HasSubstr("class_weight: 0.571428"), HasSubstr("class_weight: 4"),
                            Not(HasSubstr("class_weight_power"))))
        << file;
  }
}

TEST_F(TrainingRunTest, WarnsOfSnapshotsThatItWillReplace) {
  ASSERT_EQ(RunOnce(), 0);
  const LogCollector log;
  ASSERT_EQ(RunOnce(), 0);
  EXPECT_THAT(log.lines, Contains(HasSubstr("already has snapshots (newest: iteration 4)")));
}

TEST_F(TrainingRunTest, LogsTheLinesOfARunInTheirOrder) {
  const LogCollector log;
  ASSERT_EQ(RunOnce(), 0);
  std::vector<std::string> lines;
  for (const std::string& line : log.lines) {
    for (const char* start : {"Starting Optimization", "Snapshotting to", "Optimization Done."}) {
      if (line.find(start) == 0) lines.push_back(start);
    }
  }
  EXPECT_EQ(lines.front(), "Starting Optimization");
  EXPECT_EQ(lines.back(), "Optimization Done.");
}

// Runs two ranks. Rank 1 sees other options, but only the options of rank 0 decide about the start.
class TrainingRanksTest : public TrainingRunTest {
 protected:
  struct Seen {
    int start = -1, code = -1;
    bool lock_at_finish = true;
  };

  // Runs both ranks with requests that `change` adapts.
  std::vector<Seen> RunRanks(const std::function<void(int rank, TrainRequest*)>& change) {
    Meeting meeting(2);
    std::vector<Seen> seen(2);
    const auto run_rank = [&](int rank) {
      Seen& mine = seen[static_cast<size_t>(rank)];
      ThreadWorld world(meeting, rank, [&] {
        mine.lock_at_finish = Exists(".snap.lock");
        float one = 1;
        world_of(rank)->group().AllReduce({&one, 1});
      });
      worlds_[rank] = &world;
      TrainRequest request = request_;
      request.stop.job_check = 0;
      change(rank, &request);
      TrainingRunDeps deps;
      deps.join = [&](const RankOptions&, int) { return &world; };
      deps.make_device = [](const DeviceChoice&) { return MakeTestDevice(1); };
      deps.scheduler = deps_.scheduler;
      deps.powercap = deps_.powercap;
      TrainingRun run(request, nullptr, deps);
      run.CopyData();
      run.Join();
      run.Configure();
      if (!run.FindStart()) {
        mine.code = run.Leave(SolveResult::kFinished);
        return;
      }
      run.OpenDevice();
      run.Connect();
      run.Build();
      mine.start = run.solver().iter();
      mine.code = run.Leave(run.Train());
    };
    std::thread other(run_rank, 1);
    run_rank(0);
    other.join();
    return seen;
  }
  World* world_of(int rank) { return worlds_[rank]; }

  World* worlds_[2] = {};
};

TEST_F(TrainingRanksTest, TakeNoLockAndTheStartOfRank0) {
  TRAINER_CPU_ONLY("ranks on a GPU need a communicator of their own");
  ASSERT_EQ(RunOnce(), 0);
  const auto seen = RunRanks([&](int rank, TrainRequest* request) {
    if (rank == 0) request->start.snapshot = folder_ / "snap_iter_2.solverstate";
  });
  for (const Seen& rank : seen) {
    EXPECT_EQ(rank.start, 2);
    EXPECT_EQ(rank.code, 0);
  }
  EXPECT_FALSE(seen[0].lock_at_finish) << "another run may start while rank 0 waits for the others";
}

TEST_F(TrainingRanksTest, AllLeaveIfRank0FindsAFinishedRun) {
  TRAINER_CPU_ONLY("ranks on a GPU need a communicator of their own");
  ASSERT_EQ(RunOnce(), 0);
  const auto seen = RunRanks([&](int rank, TrainRequest* request) {
    if (rank == 0) request->start.resume = "auto";
  });
  for (const Seen& rank : seen) {
    EXPECT_EQ(rank.start, -1);
    EXPECT_EQ(rank.code, 0);
  }
}

TEST_F(TrainingRanksTest, OnlyRank0AsksTheBatchSystem) {
  TRAINER_CPU_ONLY("ranks on a GPU need a communicator of their own");
  variables_["SLURM_JOB_ID"] = "7";
  RunRanks([](int, TrainRequest*) {});
  EXPECT_THAT(events_, ElementsAre("squeue -h -j 7 -o %L"));
}

// Both ranks measure the same host, which counts once.
TEST_F(TrainingRanksTest, TheCardHasTheEnergyOfAllRanks) {
  TRAINER_CPU_ONLY("ranks on a GPU need a communicator of their own");
  deps_.powercap = folder_ / "powercap";
  std::filesystem::create_directories(folder_ / "powercap/intel-rapl:0");
  folder_.Write("powercap/intel-rapl:0/name", "package-0\n");
  folder_.Write("powercap/intel-rapl:0/energy_uj", "5\n");
  request_.monitor.run = folder_ / "run";
  for (const Seen& rank : RunRanks([](int, TrainRequest*) {})) EXPECT_EQ(rank.code, 0);
  const RunCard card = ReadRunCard(folder_ / "run");
  EXPECT_EQ(card.state, "finished");
  ASSERT_EQ(card.starts.size(), 1u);
  EXPECT_EQ(card.starts[0].info.ranks, 2);
  ASSERT_EQ(card.starts[0].energy.size(), 1u);
  EXPECT_EQ(card.starts[0].energy[0].name, "package-0");
  EXPECT_EQ(card.starts[0].energy[0].host, HostName());
  EXPECT_EQ(card.starts[0].energy[0].problem, "");
}

TEST(TrainTest, RefusesWhatContradictsItselfBeforeItReadsAFile) {
  TrainRequest request;
  request.solver.file = "missing.prototxt";
  request.start = {.snapshot = "a.solverstate", .weights = "a.caffemodel"};
  EXPECT_THAT(ErrorOf([&] { Train(request); }),
              Pair(ErrorCode::kUsage, HasSubstr("--snapshot and --weights")));
  request.start = {.snapshot = "a.solverstate", .resume = "auto"};
  EXPECT_THAT(ErrorOf([&] { Train(request); }),
              Pair(ErrorCode::kUsage, HasSubstr("--snapshot and --resume")));
  request.start = {};
  request.stop.max_wall = "soon";
  EXPECT_THAT(ErrorOf([&] { Train(request); }),
              Pair(ErrorCode::kUsage, HasSubstr("--max_wall=soon: not a time")));
  request.stop.max_wall = "";
  request.stop.sigint_effect = "jump";
  EXPECT_THAT(ErrorOf([&] { Train(request); }),
              Pair(ErrorCode::kUsage, HasSubstr("sigint_effect")));
  request.stop.sigint_effect = "stop";
  EXPECT_EQ(ErrorOf([&] { Train(request); }).first, ErrorCode::kNoInput);
}

}  // namespace
}  // namespace trainer
