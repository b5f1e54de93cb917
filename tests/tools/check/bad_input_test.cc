// User mistakes in files: each ends with its exit code and one line that says where, what and why.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "in_process.h"
#include "job.h"
#include "layers.pb.h"
#include "trainer/storage/database_writer.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

struct Mistake {
  const char* name;
  const char* from;  // in the net
  const char* to;
  int code;
  const char* start;  // of the message
  const char* part;
};

class NetMistakeTest : public testing::TestWithParam<Mistake> {};

INSTANTIATE_TEST_SUITE_P(
    In, NetMistakeTest,
    testing::Values(
        Mistake{"AFieldWithATypo", "num_output: 10", "num_ouput: 10", 78,
                "net.prototxt:26:", "Did you mean 'num_output'?"},
        Mistake{"AnUnknownLayerType", "\"InnerProduct\"", "\"InerProduct\"", 78,
                "net.prototxt:22:", "Did you mean 'InnerProduct'?"},
        Mistake{"ALayerThatIsPython", "\"InnerProduct\"", "\"Python\"", 78,
                "net.prototxt:22:", "a net cannot run Python code"},
        Mistake{"AMissingBrace", "  inner_product_param {\n", "  inner_product_param \n", 78,
                "net.prototxt:2", ""},
        Mistake{"AnUnknownEnumValue", "backend: LMDB", "backend: LMBD", 78,
                "net.prototxt:9:", "LMDB"},
        Mistake{"AnUnknownBottom", "bottom: \"data\"", "bottom: \"dta\"", 78,
                "net.prototxt:23:", "'dta'"},
        Mistake{"ABatchOfNothing", "batch_size: 16", "batch_size: 0", 78,
                "net.prototxt:9:", "batch_size"},
        Mistake{"AShapeThatDoesNotFit", "type: \"InnerProduct\"\n",
                "type: \"InnerProduct\" param { } param { } param { }\n", 78, "net.prototxt:2",
                "layer 'ip' (InnerProduct)"},
        Mistake{"AKernelThatIsTooLarge",
                "layer {\n  name: \"ip\"\n  type: \"InnerProduct\"\n  bottom: \"data\"",
                "layer {\n  name: \"conv\"\n  type: \"Convolution\"\n  bottom: \"data\"\n  top: "
                "\"conv\"\n  convolution_param {\n    num_output: 2\n"
                "    kernel_size: 29\n  }\n}\n"
                "layer {\n  name: \"ip\"\n  type: \"InnerProduct\"\n  bottom: \"conv\"",
                78, "net.prototxt:27:", "layer 'conv' (Convolution)"},
        Mistake{"ACropLargerThanTheImage", "scale: 0.00390625", "crop_size: 29", 78,
                "net.prototxt:8:", "1x28x28"},
        Mistake{"ADatabaseThatIsNotThere", "data/train_lmdb", "data/absent", 66, "", "data/absent"},
        Mistake{"ADatabaseOfAnotherKind", "backend: LMDB", "backend: LEVELDB", 66, "", "LMDB"},
        Mistake{"ALabelOutsideTheClasses", "num_output: 10", "num_output: 5", 65, "", "label"}),
    [](const auto& test) { return test.param.name; });

TEST_P(NetMistakeTest, IsRefused) {
  Job job;
  const Mistake& mistake = GetParam();
  job.net = Edited(job.net, mistake.from, mistake.to);
  ExpectRefused(job, job.Train(), mistake.code, mistake.start, mistake.part);
  EXPECT_THAT(job.Files("snap"), IsEmpty());
}

class SolverMistakeTest : public testing::TestWithParam<Mistake> {};

INSTANTIATE_TEST_SUITE_P(
    In, SolverMistakeTest,
    testing::Values(
        Mistake{"AFieldWithATypo", "base_lr:", "base_rl:", 78,
                "solver.prototxt:4:", "Did you mean 'base_lr'?"},
        Mistake{"AnUnknownPolicy", "\"inv\"", "\"ivn\"", 78, "solver.prototxt:5:", "'ivn'"},
        Mistake{"TestsWithoutAnInterval", "test_interval: 10\n", "", 78, "solver.prototxt",
                "test_interval"},
        Mistake{"NoMaxIter", "max_iter: 20\n", "", 78, "solver.prototxt", "max_iter"},
        Mistake{"ANegativeRate", "base_lr: 0.05", "base_lr: -1", 78,
                "solver.prototxt:4:", "base_lr"},
        Mistake{"AnUnknownRule", "random_seed: 7", "type: \"SDG\"", 78,
                "solver.prototxt:14:", "Did you mean 'SGD'?"},
        Mistake{"ANetThatIsNotThere", "\"net.prototxt\"", "\"nt.prototxt\"", 66, "", "nt.prototxt"},
        Mistake{"AGpu", "solver_mode: CPU", "solver_mode: GPU", 69,
                "solver.prototxt:15:1: solver_mode is GPU: ", "write solver_mode: CPU"},
        Mistake{"AFolderThatIsNotThere", "\"snap\"", "\"absent/snap\"", 73, "", "absent"}),
    [](const auto& test) { return test.param.name; });

TEST_P(SolverMistakeTest, IsRefused) {
  Job job;
  const Mistake& mistake = GetParam();
  job.solver = Edited(job.solver, mistake.from, mistake.to);
  ExpectRefused(job, job.Train(), mistake.code, mistake.start, mistake.part);
  EXPECT_THAT(job.Files("snap"), IsEmpty());
}

TEST(SyntaxErrorTest, ShowsTheLineAndTheColumn) {
  Job job;
  job.net = Edited(job.net, "num_output: 10", "num_ouput: 10");
  const Outcome outcome = job.Train();
  const std::vector<std::string> lines = outcome.ErrLines();
  ASSERT_GE(lines.size(), 3u);
  EXPECT_THAT(lines[lines.size() - 3], StartsWith("error: net.prototxt:26:5: "));
  EXPECT_THAT(lines[lines.size() - 2], "  num_ouput: 10");
  EXPECT_THAT(lines[lines.size() - 1], MatchesRegex(" +\\^"));
}

// These files would slow down or break a reader without limits.
TEST(HostileTextTest, IsRefusedByLimits) {
  Job job;
  job.Write();
  std::string deep, layers;
  for (int i = 0; i < 100000; ++i) deep += "layer { ";
  for (int i = 0; i < 20000; ++i) layers += "layer { name: \"a\" type: \"ReLU\" }\n";
  const std::tuple<const char*, std::string, const char*> files[] = {
      {"deep", deep, "deep:1:9: layer has no field 'layer'"},
      {"braces", std::string(100000, '{'), "braces:1:1: expected a field name here"},
      {"long", "name: '" + std::string(5 << 20, 'a') + "'", "is larger than 4194304 bytes"},
      {"name", "name: '" + std::string(3 << 20, 'a') + "'", "name: net 'aaa"},
      {"many", layers, "many:10001:1: the net has 20000 layers; at most 10000"},
      {"zero", std::string("name: 'a'\n\0", 11), "zero:2: there is a zero byte"},
      {"bytes", "# \xff\nname: 'a'", "bytes:1: there are bytes that are not UTF-8"},
      {"twice", "name: 'a'\nname: 'b'", "twice:2:1: 'name' is given twice"},
  };
  for (const auto& [name, text, part] : files) {
    WriteText(job.folder() / name, text);
    for (const std::string flag : {"plan --model=", "train --solver="}) {
      const size_t space = flag.find(' ');
      const Outcome outcome =
          RunHere({flag.substr(0, space), flag.substr(space + 1) + name}, job.options());
      EXPECT_EQ(outcome.exit_code, 78) << name;
      ASSERT_FALSE(outcome.Errors().empty());
      EXPECT_LE(outcome.Errors().size(), name == std::string("many") ? 51u : 2u) << outcome.err;
      EXPECT_LT(outcome.Errors()[0].size(), 5000u);
      if (flag.starts_with("plan")) {
        EXPECT_THAT(outcome.err, HasSubstr(part));
      }
    }
  }
}

// Halves the largest file of a folder, or flips the bits of the byte in its middle.
void Damage(const std::string& folder, bool cut) {
  std::filesystem::path largest;
  uintmax_t size = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.file_size() > size) {
      largest = entry.path();
      size = entry.file_size();
    }
  }
  if (cut) {
    std::filesystem::resize_file(largest, size / 2);
    return;
  }
  std::string bytes = ReadText(largest);
  bytes[bytes.size() / 2] = static_cast<char>(~bytes[bytes.size() / 2]);
  WriteText(largest, bytes);
}

TEST(BadDatabaseTest, AnEmptyLmdbIsRefused) {
  Job job;
  CreateDb("LMDB", job.folder() / "data/empty")->Commit();
  job.net = Edited(job.net, "data/train_lmdb", "data/empty");
  ExpectRefused(job, job.Train(), 65, "", "data/empty");
}

TEST(BadDatabaseTest, AnEmptyLevelDbIsRefused) {
  Job job("LEVELDB");
  CreateDb("LEVELDB", job.folder() / "data/empty")->Commit();
  job.net = Edited(job.net, "data/train_leveldb", "data/empty");
  ExpectRefused(job, job.Train(), 65, "", "data/empty");
}

TEST(BadDatabaseTest, ATruncatedLmdbIsRefused) {
  Job job;
  Damage(job.folder() / "data/train_lmdb", true);
  ExpectRefused(job, job.Train(), 65, "", "data/train_lmdb");
}

TEST(BadDatabaseTest, ADamagedLevelDbBlockIsRefused) {
  Job job("LEVELDB");
  // Opening a small database once turns its log into a table.
  ASSERT_EQ(RunHere({"dataset", "check", "data/train_leveldb"}, job.options()).exit_code, 0);
  Damage(job.folder() / "data/train_leveldb", false);
  ExpectRefused(job, job.Train(), 65, "", "data/train_leveldb");
}

TEST(BadDatabaseTest, ATruncatedLevelDbIsRefused) {
  Job job("LEVELDB");
  ASSERT_EQ(RunHere({"dataset", "check", "data/train_leveldb"}, job.options()).exit_code, 0);
  Damage(job.folder() / "data/train_leveldb", true);
  ExpectRefused(job, job.Train(), 65, "", "data/train_leveldb");
}

TEST(BadMeanTest, AMeanOfAnotherSizeIsRefused) {
  Job job;
  caffe::BlobProto mean;
  mean.set_num(1);
  mean.set_channels(1);
  mean.set_height(10);
  mean.set_width(10);
  for (int i = 0; i < 100; ++i) mean.add_data(0.5f);
  WriteText(job.folder() / "mean.binaryproto", mean.SerializeAsString());
  job.net = Edited(job.net, "scale: 0.00390625", "mean_file: \"mean.binaryproto\"");
  ExpectRefused(job, job.Train(), 78, "net.prototxt:8:", "1x10x10");
}

TEST(BadMeanTest, OtherFilesAreNoMean) {
  Job job;
  job.net = Edited(job.net, "scale: 0.00390625", "mean_file: \"mean\"");
  ExpectRefused(job, job.Train(), 66, "", "mean");
  caffe::BlobProto mean;
  for (const int dim : {1, 28, 28}) mean.mutable_shape()->add_dim(dim);
  for (int i = 0; i < 28 * 28; ++i) mean.add_data(0.5f);
  const std::string good = mean.SerializeAsString();
  caffe::BlobProto negative = mean, nan = mean, flat = mean;
  negative.mutable_shape()->set_dim(1, -28);
  nan.set_data(5, NAN);
  flat.mutable_shape()->Clear();
  flat.mutable_shape()->add_dim(28 * 28);
  const std::pair<std::string, const char*> files[] = {
      {"", "not a mean file"},
      {good.substr(0, good.size() / 2), "not a mean file"},
      {"name: \"n\"\n", "not a mean file"},
      {negative.SerializeAsString(), "negative length -28"},
      {nan.SerializeAsString(), "number 5 is NaN"},
      {flat.SerializeAsString(), "the mean must have the shape 1 C H W"},
  };
  for (const auto& [bytes, part] : files) {
    WriteText(job.folder() / "mean", bytes);
    ExpectRefused(job, job.Train(), 65, "net.prototxt:8:21: layer 'digits' (Data): mean: ", part);
  }
  WriteText(job.folder() / "mean", good);
  EXPECT_EQ(job.Train().exit_code, 0);
}

// Sanitizers reserve more address space than the limit leaves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(MemoryTest, ANetThatIsTooLargeIsRefusedWithTheFigure) {
  Job job;
  job.net = Edited(job.net, "num_output: 10", "num_output: 2000000");
  job.Write();
  RunOptions options = job.options();
  options.memory_limit = size_t{4} << 30;
  ExpectRefused(job, RunProgram(job.TrainCommand(), options), 81,
                "net.prototxt:20:", "MiB, but ulimit -v has 4096 MiB: ");
}

TEST(MemoryTest, ABatchThatIsTooLargeIsRefused) {
  Job job;
  job.net = Edited(job.net, "batch_size: 16", "batch_size: 1500000");
  job.Write();
  RunOptions options = job.options();
  options.memory_limit = size_t{4} << 30;
  ExpectRefused(job, RunProgram(job.TrainCommand(), options), 81, "", "lower batch_size");
}
#endif

struct BadFile {
  const char* name;
  std::string content;
  int code;
  const char* part;
};

class BadSolverFileTest : public testing::TestWithParam<BadFile> {};

INSTANTIATE_TEST_SUITE_P(
    With, BadSolverFileTest,
    testing::Values(BadFile{"Nothing", "", 78, "the file is empty"},
                    BadFile{"ZeroBytes", std::string("net: \"\0\"", 8), 78, "binary file"},
                    BadFile{"BytesThatAreNoText", "net: \"\xff\xfe\"", 78, "UTF-8"},
                    BadFile{"ADeepNest", std::string(100000, '{'), 78, "solver.prototxt:1:1"}),
    [](const auto& test) { return test.param.name; });

TEST_P(BadSolverFileTest, IsRefused) {
  const Job job;
  WriteText(job.folder() / "solver.prototxt", GetParam().content);
  ExpectRefused(job, RunHere(job.TrainCommand(), job.options()), GetParam().code, "solver.prototxt",
                GetParam().part);
}

TEST(BadSolverPathTest, AFolderIsNoSolver) {
  const Job job;
  ExpectRefused(job, RunHere({"train", "--solver=data"}, job.options()), 66, "/", "data");
}

TEST(DivergenceTest, StopsAtALossThatIsNotFiniteAndSavesNothing) {
  Job job;
  job.solver = Edited(job.solver, "base_lr: 0.05", "base_lr: 1e30");
  job.solver = Edited(job.solver, "snapshot: 10", "snapshot: 50");
  job.solver = Edited(job.solver, "max_iter: 20", "max_iter: 1000");
  const Outcome outcome = job.Train();
  ExpectRefused(job, outcome, 80, "iteration ", "base_lr");
  EXPECT_THAT(job.Files("snap"), IsEmpty());
}

}  // namespace
}  // namespace trainer
