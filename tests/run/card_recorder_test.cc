// A run's card describes the program, the data and the weights.

#include "card_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "datum.pb.h"
#include "support/temp_folder.h"
#include "support/test_device.h"
#include "support/thread_world.h"
#include "trainer/base/process/host_info.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/run_card.h"
#include "trainer/run/training_run.h"
#include "trainer/storage/checksums.h"
#include "trainer/storage/database_writer.h"
#include "trainer/storage/datum.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

class CardRecorderTest : public testing::Test {
 protected:
  CardRecorderTest() {
    const auto writer = CreateDb("LMDB", folder_ / "set");
    for (int i = 0; i < 8; ++i) {
      caffe::Datum datum = EmptyDatum(1, 1, 1);
      datum.set_data("x");
      datum.set_label(i % 2);
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
             "top: \"loss\" }"));
    folder_.Write("solver.prototxt",
                  Join("net: \"", folder_ / "net.prototxt", "\" snapshot_prefix: \"",
                       folder_ / "snap", "\" base_lr: 0.01 lr_policy: \"fixed\" display: 0 ",
                       "random_seed: 3 snapshot: 2 solver_mode: CPU max_iter: 4"));
    request_.solver.file = folder_ / "solver.prototxt";
    request_.monitor.run = folder_ / "run";
    deps_.join = [](const RankOptions&, int) { return nullptr; };
    deps_.make_device = [](const DeviceChoice&) { return MakeTestDevice(1); };
    deps_.powercap = folder_ / "powercap";
    std::filesystem::create_directories(folder_ / "powercap/intel-rapl:0");
    folder_.Write("powercap/intel-rapl:0/name", "package-0\n");
    folder_.Write("powercap/intel-rapl:0/energy_uj", "5\n");
  }

  RunCard Train() {
    EXPECT_EQ(TrainingRun(request_, nullptr, deps_).Run(), 0);
    return ReadRunCard(folder_ / "run");
  }

  const TempFolder folder_;
  TrainRequest request_;
  TrainingRunDeps deps_;
};

TEST_F(CardRecorderTest, SaysWhatWasRun) {
  const RunCard card = Train();
  EXPECT_EQ(card.state, "finished");
  ASSERT_THAT(card.starts, SizeIs(1));
  const CardStart& start = card.starts[0];
  EXPECT_EQ(start.info.host, HostName());
  EXPECT_THAT(start.info.libraries, Contains(testing::Pair("LMDB", Not(IsEmpty()))));
  const std::string solver = ReadText(folder_ / "run/solver.prototxt");
  EXPECT_EQ(start.solver_crc32c, Join(std::hex, Crc32c(solver.data(), solver.size())));
  EXPECT_EQ(start.seed, "3");
  EXPECT_EQ(start.last_iter, 4);
  EXPECT_EQ(start.records, 16);
  ASSERT_THAT(start.data, SizeIs(1));
  EXPECT_EQ(start.data[0].net, "train");
  EXPECT_EQ(start.data[0].source, folder_ / "set");
  EXPECT_THAT(start.data[0].content, StartsWith("8 records '0' to '7', of which "));
  EXPECT_EQ(start.data[0].all_records, "");
  ASSERT_FALSE(start.energy.empty());
  EXPECT_EQ(start.energy[0].name, "package-0");
  EXPECT_EQ(start.energy[0].problem, "");
  EXPECT_EQ(card.model.file, folder_ / "snap_iter_4.caffemodel");
  EXPECT_THAT(card.model.crc32c, Not(IsEmpty()));
}

TEST_F(CardRecorderTest, TakesTheChecksumsOfAllRecordsIfTheSetHasThem) {
  const std::vector<uint32_t> sums = {1, 2, 3, 4, 5, 6, 7, 8};
  WriteChecksums(ChecksumPath(folder_ / "set"), sums);
  const SolverSpec spec = LoadSolver(folder_ / "solver.prototxt");
  CardRecorder recorder(*MakeTestDevice(1), {}, nullptr, folder_ / "powercap");
  ObserverList observers;
  std::filesystem::create_directory(folder_ / "run");
  recorder.AddObserver(folder_ / "run", spec, {}, {}, &observers);
  observers.OnStart({});
  const RunCard card = ReadRunCard(folder_ / "run");
  EXPECT_EQ(card.starts[0].data[0].all_records,
            Join(std::hex, Crc32c(sums.data(), sums.size() * sizeof(uint32_t))));
}

TEST_F(CardRecorderTest, AResumedRunNamesItsParent) {
  Train();
  request_.start.snapshot = folder_ / "snap_iter_2.solverstate";
  const RunCard card = Train();
  ASSERT_THAT(card.starts, SizeIs(2));
  EXPECT_EQ(card.starts[0].parent.file, "");
  EXPECT_EQ(card.starts[1].parent.file, request_.start.snapshot);
  EXPECT_THAT(card.starts[1].parent.crc32c, Not(IsEmpty()));
  EXPECT_EQ(card.starts[1].first_iter, 2);
  EXPECT_EQ(card.starts[1].records, 8);
}

TEST_F(CardRecorderTest, NamesTheWeightsThatARunStartsFrom) {
  Train();
  request_.start.weights = folder_ / "snap_iter_4.caffemodel";
  const RunCard card = Train();
  ASSERT_THAT(card.starts, SizeIs(1)) << "the run starts from the beginning";
  ASSERT_THAT(card.starts[0].weights, SizeIs(1));
  EXPECT_EQ(card.starts[0].weights[0].file, request_.start.weights);
}

TEST_F(CardRecorderTest, DataThatCannotBeReadHasTheReason) {
  std::filesystem::remove_all(folder_ / "set");
  const SolverSpec spec = LoadSolver(folder_ / "solver.prototxt");
  CardRecorder recorder(*MakeTestDevice(1), {}, nullptr, folder_ / "powercap");
  ObserverList observers;
  std::filesystem::create_directory(folder_ / "run");
  recorder.AddObserver(folder_ / "run", spec, {}, {}, &observers);
  observers.OnStart({});
  const CardData data = ReadRunCard(folder_ / "run").starts[0].data.at(0);
  EXPECT_FALSE(data.is_read);
  EXPECT_THAT(data.content, StartsWith("cannot be read ("));
}

// Ranks of an asynchronous strategy make no collective calls at the end, so one thread is enough.
TEST_F(CardRecorderTest, AnAsynchronousStrategyNamesTheOtherRanksAsNotMeasured) {
  TRAINER_CPU_ONLY("the energy of a GPU needs its driver");
  Meeting meeting(2);
  ThreadWorld world(meeting, 0, [] {});
  SolverSpec spec = LoadSolver(folder_ / "solver.prototxt");
  spec.proto.set_strategy("easgd");
  CardRecorder recorder(*MakeTestDevice(1), {}, &world, folder_ / "powercap");
  ObserverList observers;
  std::filesystem::create_directory(folder_ / "run");
  recorder.AddObserver(folder_ / "run", spec, {}, {}, &observers);
  observers.OnStart({});
  recorder.GatherEnergy(spec, world.group());
  EXPECT_THAT(TotalsOf(ReadRunCard(folder_ / "run")).unmeasured,
              Contains("other ranks, hosts and GPUs: strategy 'easgd' is asynchronous, so rank 0 "
                       "does not wait for their counters"));
}

}  // namespace
}  // namespace trainer
