// The verbs that print: plan, layers, dataset, device_query.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.h"
#include "trainer/dataset/dataset.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(PlanTest, ShowsEveryNetOfASolverAndTheTotals) {
  const Job job;
  job.Write();
  const Outcome outcome =
      RunProgram({"plan", "--solver=solver.prototxt", "--verbose"}, job.options());
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
  const Outcome outcome = RunProgram({"plan", "--solver=solver.prototxt"}, job.options());
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
  const Outcome train = RunProgram({"plan", "--model=net.prototxt", "--verbose"}, job.options());
  EXPECT_THAT(train.out, HasSubstr("ip gradient"));
  const Outcome test =
      RunProgram({"plan", "--model=net.prototxt", "--phase=TEST", "--verbose"}, job.options());
  EXPECT_THAT(test.out, StartsWith("net, phase TEST: small, 6 layers\n"));
  EXPECT_THAT(test.out, Not(HasSubstr("gradient ")));
}

TEST(PlanTest, SaysWhereThePeakIsAndWhatHoldsIt) {
  const Job job;
  job.Write();
  const Outcome outcome = RunProgram({"plan", "--model=net.prototxt", "--verbose"}, job.options());
  EXPECT_TRUE(Finds(outcome.out, R"(peak: \S+ [KM]iB in use at (ip|loss)( back)?, by gradients )"))
      << outcome.out;
  EXPECT_TRUE(Finds(outcome.out, R"(\ndata +50176 +16 1 28 28 \(12544\) +ip back)")) << outcome.out;
  const Outcome json = RunProgram({"plan", "--model=net.prototxt", "--json"}, job.options());
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
    const std::string out = RunProgram(command, job.options()).out;
    return out.substr(0, out.find('\n'));
  };
  EXPECT_EQ(layers({}), "net, phase TRAIN: small, 3 layers");
  EXPECT_EQ(layers({"--level=2"}), "net, phase TRAIN: small, 5 layers");
  EXPECT_EQ(layers({"--stage=a, extra"}), "net, phase TRAIN: small, 5 layers");
  EXPECT_EQ(layers({"--level", "2", "--stage", "extra"}), "net, phase TRAIN: small, 6 layers");
  EXPECT_EQ(layers({"--level", "-1"}), "net, phase TRAIN: small, 3 layers");
}

TEST(LayersTest, ListsEveryTypeWithASentence) {
  const Outcome outcome = RunProgram({"layers"});
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* type :
       {"Convolution", "Data", "InnerProduct", "Pooling", "ReLU", "SoftmaxWithLoss"}) {
    EXPECT_TRUE(Finds("\n" + outcome.out, std::string("\n") + type + "  +[A-Za-z]")) << type;
  }
}

TEST(LayersTest, ExplainsAType) {
  const Outcome outcome = RunProgram({"layers", "Pooling"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, StartsWith("Pooling\n\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nbottoms: 1\n"));
  EXPECT_TRUE(Finds(outcome.out, R"(\n +stride +uint32 +1 )")) << outcome.out;
  EXPECT_TRUE(Finds(outcome.out, " enum +MAX +MAX \\| AVE \\| STOCHASTIC")) << outcome.out;
}

TEST(LayersTest, PlansAnExampleOfAType) {
  const Outcome outcome = RunProgram({"layers", "Convolution"});
  EXPECT_THAT(outcome.out, HasSubstr("\nexample:\n  layer { name: \"conv1\""));
  EXPECT_THAT(outcome.out, HasSubstr("\nreads:   data (8, 3, 32, 32)\n"
                                     "writes:  conv1 (8, 16, 16, 16)\n"
                                     "stores:  (16, 3, 5, 5), (16)\n"));
}

TEST(SolverTest, ExplainsARule) {
  const Outcome outcome = RunProgram({"solver", "Nesterov"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("Nesterov\n\nv' = momentum * v + lr * g; "));
}

TEST(LayersTest, PrintsTheSchemaAsJson) {
  const Outcome layers = RunProgram({"layers", "--json"});
  EXPECT_EQ(layers.exit_code, 0) << layers.err;
  EXPECT_THAT(layers.out, HasSubstr("\"type\": \"Convolution\""));
  EXPECT_THAT(layers.out, HasSubstr("\"FillerParameter\": {"));
  const Outcome solver = RunProgram({"solver", "--json"});
  EXPECT_THAT(solver.out, HasSubstr("\"name\": \"ema_decay\""));
  EXPECT_EQ(RunProgram({"layers", "Pooling", "--json"}).exit_code, 64);
}

TEST(SolverTest, ListsRulesAndFieldsAndExplainsOne) {
  const Outcome all = RunProgram({"solver"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_THAT(all.out, StartsWith("update rules (field type): AdaDelta, AdaGrad, Adam, AdamW, CD, "
                                  "LARS, LBFGS,\nNesterov, RMSProp, SAG, SGD\n"));
  EXPECT_THAT(all.out, HasSubstr("\n  ema_decay "));
  const Outcome one = RunProgram({"solver", "warmup_iter"});
  EXPECT_EQ(one.out,
            "warmup_iter: int32, default 0\n\nWarm-up: iterations of a linear rise to the learning "
            "rate of lr_policy; 0: none.\n");
  const Outcome none = RunProgram({"solver", "warmup_itr"});
  EXPECT_EQ(none.exit_code, 64);
  EXPECT_EQ(none.err,
            "error: no solver field 'warmup_itr'. Did you mean 'warmup_iter'? 'trainer solver' "
            "lists the fields\n");
}

TEST(LayersTest, ExplainsTheFieldsThatManyTypesHave) {
  const auto page = [](const std::string& name) {
    const Outcome outcome = RunProgram({"layers", name});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_TRUE(Finds(page("LayerParameter"), R"(\n +loss_weight +repeated float\n +[A-Z])"));
  EXPECT_TRUE(Finds(page("NetParameter"), R"(\n +force_backward +bool +false\n +[A-Z])"));
  EXPECT_THAT(page("transform_param"), StartsWith("TransformationParameter: "));
  EXPECT_THAT(page("FillerParameter"), HasSubstr("variance_norm"));
}

TEST(LayersTest, NamesTheNearestType) {
  const Outcome outcome = RunProgram({"layers", "Poling"});
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("Did you mean 'Pooling'?")));
}

TEST(DatasetTest, MakesAndDescribesBothKindsOfDatabase) {
  const TempFolder folder;
  for (const std::string backend : {"LMDB", "LEVELDB"}) {
    const std::string ending = backend == "LMDB" ? "lmdb" : "leveldb";
    const RunOptions options = {.folder = folder.path()};
    const Outcome made = RunProgram(
        {"dataset", "digits", "d", "--train=30", "--test=20", "--backend", backend}, options);
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(made.out, "d/train_" + ending + ": 30 records\nd/test_" + ending + ": 20 records\n");
    const Outcome info = RunProgram({"dataset", "check", "d/train_" + ending}, options);
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
  const Outcome made = RunProgram({"dataset", "idx", "images", "labels", "db"}, options);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out, "db: 2 records\n");
  EXPECT_THAT(RunProgram({"dataset", "check", "db"}, options).out, HasSubstr("label: 9, 1\n"));
}

TEST(DatasetTest, ConvertsFilesOfCifar10) {
  const TempFolder folder;
  WriteText(folder / "data_batch_1.bin",
            "\x07" + std::string(3072, 'a') + "\x02" + std::string(3072, 'c'));
  WriteText(folder / "test_batch.bin", "\x03" + std::string(3072, 'd'));
  const RunOptions options = {.folder = folder.path()};
  const Outcome made = RunProgram({"dataset", "cifar10", ".", "db"}, options);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out,
            "db/cifar10_train_lmdb: 2 records\ndb/cifar10_test_lmdb: 1 records\n"
            "db/mean.binaryproto: mean of the training images\n");
  const Outcome info = RunProgram({"dataset", "check", "db/cifar10_train_lmdb"}, options);
  EXPECT_THAT(info.out, HasSubstr("3x32x32"));
  EXPECT_THAT(info.out, HasSubstr("label: 7, 1\n"));
}

TEST(DatasetTest, MakesPairs) {
  const TempFolder folder;
  const RunOptions options = {.folder = folder.path()};
  WriteDigits({.folder = folder / "d", .train = 40, .test = 5});
  const Outcome made =
      RunProgram({"dataset", "pairs", "d/train_lmdb", "p", "--backend=leveldb"}, options);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out, "p: 40 records\n");
  const Outcome info = RunProgram({"dataset", "check", "p"}, options);
  EXPECT_THAT(info.out, HasSubstr("kind: LEVELDB\nrecords: 40\n"));
  EXPECT_THAT(info.out, HasSubstr("2x28x28"));
}

TEST(DatasetTest, ConvertsPicturesAndComputesTheirMean) {
  const TempFolder folder;
  WriteText(folder / "a b.pgm", "P5 2 1 255\n\x0a\x14");
  WriteText(folder / "c.pgm", "P5 2 1 255\n\x1e\x28");
  WriteText(folder / "list", "a b.pgm 3\r\nc.pgm 4\r\nabsent.png 5\r\n");
  const RunOptions options = {.folder = folder.path()};
  const Outcome made = RunProgram({"dataset", "images", ".", "list", "db", "--gray"}, options);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out, "db: 2 records\nskipped: 1 unreadable files\n");
  EXPECT_THAT(made.err, HasSubstr("list:3: cannot read the image: "));
  EXPECT_THAT(RunProgram({"dataset", "check", "db"}, options).out,
              HasSubstr("first key: 00000000_a b.pgm\n"));
  const Outcome mean = RunProgram({"dataset", "mean", "db", "mean.binaryproto"}, options);
  EXPECT_EQ(mean.exit_code, 0) << mean.err;
  EXPECT_EQ(mean.out, "mean.binaryproto: mean of 2 records of 1x1x2\nmean_value channel [0]: 25\n");
}

TEST(DatasetTest, DoesNotOverwrite) {
  const TempFolder folder;
  const RunOptions options = {.folder = folder.path()};
  const std::vector<std::string> command = {"dataset", "digits", "d", "--train=5", "--test=5"};
  EXPECT_EQ(RunProgram(command, options).exit_code, 0);
  const Outcome again = RunProgram(command, options);
  EXPECT_EQ(again.exit_code, 73);
  EXPECT_THAT(again.Errors(), ElementsAre(HasSubstr("train_lmdb")));
}

TEST(DatasetTest, NamesAMissingDatabase) {
  const Outcome outcome = RunProgram({"dataset", "check", "/absent/db"});
  EXPECT_EQ(outcome.exit_code, 66);
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("/absent/db")));
}

TEST(DeviceQueryTest, NamesTheProcessorAndTheThreads) {
  const Outcome outcome = RunProgram({"device_query"}, {.env = {"OMP_NUM_THREADS=1"}});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, StartsWith("device:     CPU, 1 thread, "));
  EXPECT_THAT(outcome.out, HasSubstr("OMP_NUM_THREADS=1"));
  EXPECT_TRUE(Finds(outcome.out, R"(\noneDNN: +\d+\.\d+\.\d+)"));
  EXPECT_TRUE(Finds(outcome.out, R"(\nCUDA: +this build has no CUDA)")) << outcome.out;
}

}  // namespace
}  // namespace trainer
