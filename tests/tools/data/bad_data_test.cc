// Data that cannot be read: each fault ends with its code and a line that names the file, never
// with a crash, a hang or a message without a name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "check_job.h"
#include "in_process.h"
#include "support/records.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::Eq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr size_t kPage = 4096;

class DamagedPageTest : public testing::Test {
 protected:
  // Writes data.mdb with `value` at `offset`.
  void Damage(size_t offset, const std::string& value) {
    std::string bytes = good_;
    bytes.replace(offset, value.size(), value);
    WriteText(file_, bytes);
  }
  // Expects exit code 0, or 65 and a line that names the database.
  void ExpectNamed(const Outcome& outcome, size_t offset) {
    EXPECT_EQ(outcome.signal, 0) << offset;
    EXPECT_THAT(outcome.exit_code, AnyOf(Eq(0), Eq(65))) << offset << outcome.err;
    if (outcome.exit_code == 0) return;
    const std::string all = outcome.out + outcome.err;  // `check` writes its findings to stdout
    EXPECT_THAT(all, HasSubstr("data/train_lmdb: ")) << offset;
    bad_ += outcome.exit_code == 65;
  }

  Job job_;
  std::string file_ = job_.folder() / "data/train_lmdb/data.mdb";
  std::string good_ = ReadText(file_);
  int bad_ = 0;
};

TEST_F(DamagedPageTest, EveryHeaderOfAllOnesEndsWithTheDatabasesName) {
  job_.Write();
  const size_t pages = good_.size() / kPage;
  for (size_t page = 2; page < pages; ++page) {
    const size_t offset = page * kPage + 12;
    Damage(offset, "\xff\xff");
    ExpectNamed(RunProgram({"dataset", "check", "data/train_lmdb"}, job_.options()), offset);
    if (page % 8 != 2 && page + 2 < pages) continue;  // the root is among the last
    ExpectNamed(RunProgram({"check", "--solver=solver.prototxt"}, job_.options()), offset);
    ExpectNamed(RunProgram(job_.TrainCommand(), job_.options()), offset);
  }
  EXPECT_GT(bad_, 0);
}

TEST_F(DamagedPageTest, DamageAnywhereEndsWithTheDatabasesName) {
  uint32_t random = 1;
  const auto below = [&](size_t n) {
    random = random * 1664525 + 1013904223;
    return static_cast<size_t>((uint64_t{random} * n) >> 32);
  };
  for (int i = 0; i < 60; ++i) {
    const size_t page = 2 + below(good_.size() / kPage - 2);
    const size_t offset = page * kPage + below(i % 2 == 0 ? 16 : 64);
    Damage(offset, std::string(1 + below(4), static_cast<char>(below(256))));
    ExpectNamed(RunProgram({"dataset", "check", "data/train_lmdb"}, job_.options()), offset);
  }
}

// The run writes snapshots almost all the time, but no part of one may remain.
TEST_F(DamagedPageTest, AShortenedFileIsNamed) {
  job_.solver = Edited(Edited(job_.solver, "max_iter: 20", "max_iter: 100000000"), "display: 5",
                       "display: 1000");
  job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 1");
  job_.Write();
  RunningProgram run(job_.TrainCommand(), job_.options());
  run.WaitForLine("Iteration 0 (");
  std::filesystem::resize_file(file_, 2 * kPage);
  ExpectRefused(job_, run.Wait(), 65,
                "data/train_lmdb: ", "the database file became shorter while it was read");
}

TEST(SharedLevelDbTest, SeveralLayersReadIt) {
  Job job("LEVELDB");
  job.net = Edited(job.net, "data/test_leveldb", "data/train_leveldb");
  EXPECT_EQ(job.Train().exit_code, 0) << "train and test net";
  job.net = Edited(job.net, "layer {\n  name: \"ip\"",
                   "layer { name: \"again\" type: \"Data\" top: \"data2\" data_param {\n"
                   "  source: \"data/train_leveldb\" backend: LEVELDB batch_size: 4 } }\n"
                   "layer { name: \"quiet\" type: \"Silence\" bottom: \"data2\" }\n"
                   "layer {\n  name: \"ip\"");
  const Outcome outcome = job.Train();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(RunHere({"check", "--solver=solver.prototxt"}, job.options()).exit_code, 0);
}

TEST(DatasetInfoTest, EndsWithAnErrorWhenRecordsAreUnusable) {
  const Job job;
  PutRecord(job, "data/test_lmdb", 39, "no datum");
  const Outcome outcome = RunHere({"dataset", "check", "data/test_lmdb"}, job.options());
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.out, HasSubstr("\nunusable: 1\n"));
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(StartsWith("data/test_lmdb: record '00000039' is not a Datum"),
                                HasSubstr("; of 40 records 1 is unusable"))));
}

TEST(BadLabelTest, TrainNamesTheDatabaseAndTheRecord) {
  for (const char* backend : {"LMDB", "LEVELDB"}) {
    Job job(backend);
    const std::string database =
        std::string("data/train_") + (backend[1] == 'M' ? "lmdb" : "leveldb");
    PutRecord(job, database, 37, DigitOf(12).SerializeAsString());
    ExpectRefused(job, job.Train(), 65, "net.prototxt:",
                  "layer 'loss' (SoftmaxWithLoss): label 12 of item 5 of the batch is not a class");
    EXPECT_THAT(job.Train().err, HasSubstr("; item 5 is record '00000037' of " + database + "\n"));
  }
}

TEST(BadLabelTest, ATestNetNamesThemToo) {
  Job job;
  PutRecord(job, "data/test_lmdb", 0, DigitOf(-3).SerializeAsString());
  ExpectRefused(job, job.Train(), 65,
                "net.prototxt:", "; item 0 is record '00000000' of data/test_lmdb");
}

TEST(BadLabelTest, AListIsNamedWithItsLine) {
  Job job;
  std::string list;
  for (int i = 0; i < 40; ++i) list += Join("p.pgm ", i == 21 ? 99 : i % 10, "\n");
  WriteText(job.folder() / "list", list);
  WriteText(job.folder() / "p.pgm", "P5\n28 28\n255\n" + std::string(784, 'x'));
  job.net = Edited(job.net, "\"Data\"", "\"ImageData\"");
  job.net = Edited(job.net, "data_param { source: \"data/train_lmdb\" backend: LMDB",
                   "image_data_param { is_color: false source: \"list\"");
  ExpectRefused(job, job.Train(), 65, "net.prototxt:", "item 5 is record 'epoch 0 line 22 p.pgm'");
}

struct NamedBadData {
  const char* name;
  const char* from;  // in the net
  const char* to;
  const char* start;  // of the message
};

class NamedFileTest : public testing::TestWithParam<NamedBadData> {};

INSTANTIATE_TEST_SUITE_P(
    Of, NamedFileTest,
    testing::Values(
        NamedBadData{"AMean", "scale: 0.00390625", "mean_file: \"FILE\"",
                     "net.prototxt:8:21: layer 'digits' (Data): "},
        NamedBadData{"ADatabase", "data/train_lmdb", "FILE",
                     "net.prototxt:9:16: layer 'digits' (Data): "},
        NamedBadData{
            "AListOfImages",
            "\"Data\"\n  top: \"data\"\n  top: \"label\"\n  include { phase: TRAIN }",
            "\"ImageData\" image_data_param { source: \"FILE\" batch_size: 4 }\n  top: \"data\"\n"
            "  top: \"label\"\n  include { phase: TRAIN }",
            "net.prototxt:4:40: layer 'digits' (ImageData): "},
        NamedBadData{"AListOfWindows",
                     "\"Data\"\n  top: \"data\"\n  top: \"label\"\n  include { phase: TRAIN }\n"
                     "  transform_param { scale: 0.00390625 }",
                     "\"WindowData\" window_data_param { source: \"FILE\" batch_size: 4 }\n"
                     "  top: \"data\"\n  top: \"label\"\n  include { phase: TRAIN }\n"
                     "  transform_param { crop_size: 28 }",
                     "net.prototxt:4:42: layer 'digits' (WindowData): "},
        NamedBadData{"AListOfHdf5Files",
                     "\"Data\"\n  top: \"data\"\n  top: \"label\"\n  include { phase: TRAIN }\n"
                     "  transform_param { scale: 0.00390625 }",
                     "\"HDF5Data\" hdf5_data_param { source: \"FILE\" batch_size: 4 }\n"
                     "  top: \"data\"\n  top: \"label\"\n  include { phase: TRAIN }",
                     "net.prototxt:4:38: layer 'digits' (HDF5Data): "},
        NamedBadData{"AMatrix", "\"SoftmaxWithLoss\"",
                     "\"InfogainLoss\" infogain_loss_param { source: \"FILE\" }", "net.prototxt:"}),
    [](const auto& test) { return test.param.name; });

TEST_P(NamedFileTest, IsRefusedAtItsLine) {
  Job job;
  const NamedBadData& named = GetParam();
  job.net = Edited(job.net, named.from, named.to);
  const std::string as_written = job.net;
  std::filesystem::create_directory(job.folder() / "sub");
  WriteText(job.folder() / "sub/empty", "");
  const std::pair<std::string, int> files[] = {{"absent", 66}, {"sub/empty", 65}};
  for (const auto& [file, code] : files) {
    job.net = Edited(as_written, "FILE", file);
    ExpectRefused(job, job.Train(), code, named.start, file);
  }
}

TEST_P(NamedFileTest, NamesBothFoldersThatWereLookedIn) {
  Job job;
  const NamedBadData& named = GetParam();
  job.net = Edited(Edited(job.net, named.from, named.to), "FILE", "absent");
  job.solver = Edited(job.solver, "\"net.prototxt\"", "\"nets/net.prototxt\"");
  std::filesystem::create_directory(job.folder() / "nets");
  WriteText(job.folder() / "nets/net.prototxt", job.net);
  const std::string here = std::filesystem::canonical(job.folder().path()).string();
  ExpectRefused(job, job.Train(), 66, std::string("nets/") + named.start,
                "' does not exist; tried " + here + "/absent and " + here + "/nets/absent");
}

// The path is neither a file nor a folder: reading it would wait or never end.
class StrangeFileTest : public testing::TestWithParam<const char*> {
 protected:
  StrangeFileTest() {
    const std::string kind = GetParam();
    path_ = "/dev/zero";
    if (kind == "ADevice") return;
    path_ = job_.folder() / "strange";
    if (kind == "APipe") {
      EXPECT_EQ(mkfifo(path_.c_str(), 0666), 0);
      return;
    }
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    close(fd);
  }
  void ExpectStrange(const std::vector<std::string>& command, int code = 66,
                     const std::string& part = "not a file") {
    RunOptions options = job_.options();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    options.memory_limit = size_t{4} << 30;
#endif
    const Outcome outcome = RunProgram(command, options);
    EXPECT_EQ(outcome.exit_code, code) << command[0] << " " << outcome.err;
    const std::vector<std::string> lines =
        command[0] == "check" ? Lines(outcome, "error: ") : outcome.Errors();
    EXPECT_THAT(lines, ElementsAre(HasSubstr(part))) << command[0] << " " << outcome.err;
  }

  Job job_;
  std::string path_;
};

INSTANTIATE_TEST_SUITE_P(Is, StrangeFileTest, testing::Values("APipe", "ADevice", "ASocket"),
                         [](const auto& test) { return test.param; });

TEST_P(StrangeFileTest, RefusedAsAFileOfTheCommandLine) {
  job_.Write();
  const std::string net = "--model=net.prototxt";
  ExpectStrange({"train", "--solver=" + path_});
  ExpectStrange({"check", "--solver=" + path_});
  ExpectStrange({"plan", "--model=" + path_});
  ExpectStrange({"train", "--solver=solver.prototxt", "--weights=" + path_});
  ExpectStrange({"train", "--solver=solver.prototxt", "--snapshot=" + path_}, 66, "");
  ExpectStrange({"test", net, "--weights=" + path_});
  ExpectStrange({"upgrade", path_, "out"});
  ExpectStrange({"dataset", "images", ".", path_, "out"});
  ExpectStrange({"dataset", "idx", path_, path_, "out"});
  ExpectStrange({"dataset", "check", path_}, 65, "but a database is a folder");
  EXPECT_THAT(job_.Files("out"), IsEmpty());
}

TEST_P(StrangeFileTest, RefusedAsAFileOfANet) {
  const std::string net = job_.net;
  for (const NamedBadData& named :
       {NamedBadData{"", "scale: 0.00390625", "mean_file: \"FILE\"", ""},
        NamedBadData{"", "\"SoftmaxWithLoss\"",
                     "\"InfogainLoss\" infogain_loss_param { source: \"FILE\" }", ""}}) {
    job_.net = Edited(Edited(net, named.from, named.to), "FILE", path_);
    job_.Write();
    ExpectStrange(job_.TrainCommand());
  }
  job_.net = Edited(net, "data/train_lmdb", path_);
  job_.Write();
  ExpectStrange(job_.TrainCommand(), 65, "but a database is a folder");
}

TEST_P(StrangeFileTest, RefusedAsAnImageOfAList) {
  WriteText(job_.folder() / "list", path_ + " 1\n");
  ExpectStrange({"dataset", "images", "/", "list", "out"}, 65, "none of the 1 images");
}

TEST_P(StrangeFileTest, RefusedAsAFileOfADatabase) {
  const std::string folder = job_.folder() / "database";
  for (const char* marker : {"data.mdb", "CURRENT", "LOCK"}) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    WriteText(folder + "/CURRENT", "MANIFEST-000001\n");
    std::filesystem::remove(folder + "/" + marker);
    std::filesystem::create_symlink(path_, folder + "/" + marker);
    ExpectStrange({"dataset", "check", "database"}, 65, "a database must have regular files only");
  }
}

TEST(Cifar10Test, LeavesNothingWithoutItsFiles) {
  const Job job;
  const auto before = job.Files("");
  ExpectRefused(job, RunHere({"dataset", "cifar10", "data", "made/here"}, job.options()), 66, "/",
                "data_batch_1.bin");
  EXPECT_EQ(job.Files(""), before);
}

}  // namespace
}  // namespace trainer
