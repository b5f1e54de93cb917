// Commands that print: plan, layers, dataset, device_query.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"
#include "trainer/datasets/digits.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(PlanTest, ShowsEveryNetOfASolverAndTheTotals) {
  const Job job;
  job.Write();
  const Outcome outcome = RunHere({"plan", "--solver=solver.prototxt", "--verbose"}, job.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("training net: small, 3 layers\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\ntest net (#0): small, 6 layers\n"));
  EXPECT_TRUE(Finds(outcome.out, R"(\d+ +50176 +data +16 1 28 28 \(12544\) +digits +ip back)"))
      << outcome.out;
  EXPECT_TRUE(Finds(outcome.out, R"(\d+ +640 +ip gradient +16 10 \(160\) +loss back +ip back)"))
      << outcome.out;
  for (const char* row : {"parameters", "gradients", "rule state", "values of all nets"}) {
    EXPECT_TRUE(Finds(outcome.out, std::string("\n *\\S+ [KM]iB  ") + row + "\n")) << row;
  }
}

TEST(PlanTest, SaysInFewLinesWhatTakesTheMemoryAndWhetherItFits) {
  const Job job;
  job.Write();
  const Outcome outcome = RunHere({"plan", "--solver=solver.prototxt"}, job.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(Finds(
      outcome.out, R"(\ntraining net: peak at (?:ip|loss)(?: back)?, \S+ KiB: .*data 49\.0 KiB, )"))
      << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("\ntest net (#0): peak at "));
  EXPECT_TRUE(Finds(outcome.out, R"(^\S+ MiB of memory fits into )")) << outcome.out;
  EXPECT_THAT(outcome.out, Not(HasSubstr("50176")));
  EXPECT_LE(std::ranges::count(outcome.out, '\n'), 11) << outcome.out;
}

TEST(PlanTest, ShowsOnePhaseOfANet) {
  const Job job;
  job.Write();
  const Outcome train = RunHere({"plan", "--model=net.prototxt", "--verbose"}, job.options());
  EXPECT_THAT(train.out, HasSubstr("ip gradient"));
  const Outcome test =
      RunHere({"plan", "--model=net.prototxt", "--phase=TEST", "--verbose"}, job.options());
  EXPECT_THAT(test.out, StartsWith("net, phase TEST: small, 6 layers\n"));
  EXPECT_THAT(test.out, Not(HasSubstr("gradient ")));
}

TEST(PlanTest, SaysWhereThePeakIsAndWhatHoldsIt) {
  const Job job;
  job.Write();
  const Outcome outcome = RunHere({"plan", "--model=net.prototxt", "--verbose"}, job.options());
  EXPECT_TRUE(Finds(outcome.out, R"(peak: \S+ [KM]iB in use at (ip|loss)( back)?, by gradients )"))
      << outcome.out;
  EXPECT_TRUE(Finds(outcome.out, R"(\ndata +50176 +16 1 28 28 \(12544\) +ip back)")) << outcome.out;
  const Outcome json = RunHere({"plan", "--model=net.prototxt", "--json"}, job.options());
  ASSERT_EQ(json.exit_code, 0) << json.err;
  EXPECT_TRUE(Finds(json.out, R"("peak": \{\n +"step": "(ip|loss)( back)?")")) << json.out;
  EXPECT_TRUE(Finds(json.out, R"("holders": \[\n[^\]]*"data")")) << json.out;
}

TEST(PlanTest, FollowsLevelAndStage) {
  Job job;
  job.net += R"(layer { name: "high" type: "Silence" bottom: "ip" include { min_level: 2 } }
                layer { name: "extra" type: "Silence" bottom: "ip" include { stage: "extra" } })";
  job.Write();
  auto layers = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"plan", "--model=net.prototxt", "--verbose"};
    command.insert(command.end(), more.begin(), more.end());
    const std::string out = RunHere(command, job.options()).out;
    return out.substr(0, out.find('\n'));
  };
  EXPECT_EQ(layers({}), "net, phase TRAIN: small, 3 layers");
  EXPECT_EQ(layers({"--level=2"}), "net, phase TRAIN: small, 5 layers");
  EXPECT_EQ(layers({"--stage=a, extra"}), "net, phase TRAIN: small, 5 layers");
  EXPECT_EQ(layers({"--level", "2", "--stage", "extra"}), "net, phase TRAIN: small, 6 layers");
  EXPECT_EQ(layers({"--level", "-1"}), "net, phase TRAIN: small, 3 layers");
}

TEST(ReferenceTest, ExplainsLayersAndSolverFields) {
  EXPECT_THAT(RunHere({"layers"}).out, HasSubstr("\nPooling  "));
  EXPECT_THAT(RunHere({"layers", "Pooling"}).out, StartsWith("Pooling\n\n"));
  const std::string json = RunHere({"layers", "--json"}).out;  // plans an example of every type
  EXPECT_THAT(json, HasSubstr("\"type\": \"Convolution\""));
  EXPECT_THAT(json, HasSubstr("\"FillerParameter\": {"));
  EXPECT_EQ(RunHere({"layers", "Pooling", "--json"}).exit_code, 64);
  const Outcome unknown = RunHere({"layers", "Poling"});
  EXPECT_EQ(unknown.exit_code, 64);
  EXPECT_THAT(unknown.Errors(), ElementsAre(HasSubstr("Did you mean 'Pooling'?")));
  EXPECT_THAT(RunHere({"solver"}).out, StartsWith("update rules (field type): "));
  EXPECT_THAT(RunHere({"solver", "Nesterov"}).out, StartsWith("Nesterov\n\n"));
  EXPECT_THAT(RunHere({"solver", "--json"}).out, StartsWith("{\n"));
}

TEST(DatasetTest, MakesAndDescribesBothKindsOfDatabase) {
  const TempFolder folder;
  for (const std::string backend : {"LMDB", "LEVELDB"}) {
    const std::string ending = backend == "LMDB" ? "lmdb" : "leveldb";
    const RunOptions options = {.folder = folder.path()};
    const Outcome made = RunHere(
        {"dataset", "digits", "d", "--train=30", "--test=20", "--backend", backend}, options);
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(made.out, "d/train_" + ending + ": 30 records\nd/test_" + ending + ": 20 records\n");
    const Outcome info = RunHere({"dataset", "check", "d/train_" + ending}, options);
    EXPECT_THAT(info.out, HasSubstr("kind: " + backend + "\nrecords: 30\n"));
    EXPECT_THAT(info.out, HasSubstr("1x28x28"));
  }
}

TEST(DatasetTest, ConvertsFilesOfMnist) {
  const TempFolder folder;
  const std::string image(28 * 28, '\x7f');
  WriteText(folder / "images",
            std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x1c\0\0\0\x1c", 16) + image + image);
  WriteText(folder / "labels", std::string("\0\0\x08\x01\0\0\0\x02\x05\x09", 10));
  const RunOptions options = {.folder = folder.path()};
  const Outcome made = RunHere({"dataset", "idx", "images", "labels", "db"}, options);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out, "db: 2 records\n");
  EXPECT_THAT(RunHere({"dataset", "check", "db"}, options).out, HasSubstr("label: 9, 1\n"));
}

TEST(DatasetTest, ConvertsFilesOfCifar10) {
  const TempFolder folder;
  WriteText(folder / "data_batch_1.bin",
            "\x07" + std::string(3072, 'a') + "\x02" + std::string(3072, 'c'));
  WriteText(folder / "test_batch.bin", "\x03" + std::string(3072, 'd'));
  const RunOptions options = {.folder = folder.path()};
  const Outcome made = RunHere({"dataset", "cifar10", ".", "db"}, options);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out,
            "db/cifar10_train_lmdb: 2 records\ndb/cifar10_test_lmdb: 1 records\n"
            "db/mean.binaryproto: mean of the training images\n");
  const Outcome info = RunHere({"dataset", "check", "db/cifar10_train_lmdb"}, options);
  EXPECT_THAT(info.out, HasSubstr("3x32x32"));
  EXPECT_THAT(info.out, HasSubstr("label: 7, 1\n"));
}

TEST(DatasetTest, MakesPairs) {
  const TempFolder folder;
  const RunOptions options = {.folder = folder.path()};
  WriteDigits({.folder = folder / "d", .train = 40, .test = 5});
  const Outcome made =
      RunHere({"dataset", "pairs", "d/train_lmdb", "p", "--backend=leveldb"}, options);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out, "p: 40 records\n");
  const Outcome info = RunHere({"dataset", "check", "p"}, options);
  EXPECT_THAT(info.out, HasSubstr("kind: LEVELDB\nrecords: 40\n"));
  EXPECT_THAT(info.out, HasSubstr("2x28x28"));
}

TEST(DatasetTest, ConvertsPicturesAndComputesTheirMean) {
  const TempFolder folder;
  WriteText(folder / "a b.pgm", "P5 2 1 255\n\x0a\x14");
  WriteText(folder / "c.pgm", "P5 2 1 255\n\x1e\x28");
  WriteText(folder / "list", "a b.pgm 3\r\nc.pgm 4\r\nabsent.png 5\r\n");
  const RunOptions options = {.folder = folder.path()};
  const Outcome made = RunHere({"dataset", "images", ".", "list", "db", "--gray"}, options);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out, "db: 2 records\nskipped: 1 unreadable files\n");
  EXPECT_THAT(made.err, HasSubstr("list:3: cannot read the image: "));
  EXPECT_THAT(RunHere({"dataset", "check", "db"}, options).out,
              HasSubstr("first key: 00000000_a b.pgm\n"));
  const Outcome mean = RunHere({"dataset", "mean", "db", "mean.binaryproto"}, options);
  EXPECT_EQ(mean.exit_code, 0) << mean.err;
  EXPECT_EQ(mean.out, "mean.binaryproto: mean of 2 records of 1x1x2\nmean_value channel [0]: 25\n");
}

TEST(DatasetTest, DoesNotOverwrite) {
  const TempFolder folder;
  const RunOptions options = {.folder = folder.path()};
  const std::vector<std::string> command = {"dataset", "digits", "d", "--train=5", "--test=5"};
  EXPECT_EQ(RunHere(command, options).exit_code, 0);
  const Outcome again = RunHere(command, options);
  EXPECT_EQ(again.exit_code, 73);
  EXPECT_THAT(again.Errors(), ElementsAre(HasSubstr("train_lmdb")));
}

TEST(DatasetTest, NamesAMissingDatabase) {
  const Outcome outcome = RunHere({"dataset", "check", "/absent/db"});
  EXPECT_EQ(outcome.exit_code, 66);
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("/absent/db")));
}

TEST(DeviceQueryTest, NamesTheProcessorAndTheThreads) {
  const Outcome outcome = RunHere({"device_query"}, {.env = {"OMP_NUM_THREADS=1"}});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, StartsWith("device:     CPU, 1 thread, "));
  EXPECT_THAT(outcome.out, HasSubstr("OMP_NUM_THREADS=1"));
  EXPECT_TRUE(Finds(outcome.out, R"(\noneDNN: +\d+\.\d+\.\d+)"));
  EXPECT_TRUE(Finds(outcome.out, R"(\nCUDA: +this build has no CUDA)")) << outcome.out;
}

}  // namespace
}  // namespace trainer
