// trainer check lists everything that would stop a run, and writes nothing.

#include "check_job.h"
#include "in_process.h"
#include "support/json_reader.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(CheckTest, AGoodRunGivesFiguresAndAVerdict) {
  const CheckJob job;
  job.Write();
  const auto before = job.Everything();
  const Outcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(Lines(outcome, "error"), IsEmpty());
  EXPECT_THAT(Lines(outcome, "warning"), IsEmpty());
  EXPECT_THAT(Lines(outcome, "data "),
              ElementsAre(EndsWith("training net: data/train_lmdb, 100 records, batches of 16: 7 "
                                   "iterations per epoch, 3.2 epochs in all"),
                          EndsWith("test net #0: data/test_lmdb, 40 records, batches of 16, a "
                                   "test is one pass over all records")));
  EXPECT_THAT(Lines(outcome, "snapshots "),
              ElementsAre(EndsWith("2 of 61.4 KiB as snap_iter_...")));
  EXPECT_EQ(Lines(outcome, "first pass ").size(), 2u);
  EXPECT_THAT(Lines(outcome, "check: "),
              ElementsAre(AllOf(StartsWith("all good; "),
                                HasSubstr(" of memory, 100 records and 7 "
                                          "iterations per epoch"),
                                EndsWith("snapshots of 61.4 KiB"))));
  EXPECT_EQ(job.Everything(), before) << "nothing was written";
}

TEST(CheckTest, ErrorsAreThoseOfTrain) {
  CheckJob job;
  job.ExpectOne(64, "--batch=none: give the number of images in a batch", {"--batch=none"});
  job.net = Edited(job.net, "data/test_lmdb", "data/absent");
  job.ExpectOne(66, "source 'data/absent' does not exist; tried /");
}

TEST(CheckTest, TheJsonHasTheExitCode) {
  CheckJob job;
  job.net = Edited(job.net, "num_output: 10", "num_ouput: 10");
  const Outcome bad = job.Check({"--json"});
  EXPECT_EQ(bad.exit_code, 78);
  EXPECT_EQ(ReadJson(bad.out)["findings"][0]["place"].text, "net.prototxt:26:5");
}

TEST(CheckTest, ChecksOneNet) {
  const CheckJob job;
  job.Write();
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"check", "--model=net.prototxt"});
    return RunHere(more, job.options());
  };
  const Outcome test = run({"--phase=TEST"});
  EXPECT_EQ(test.exit_code, 0) << test.out << test.err;
  EXPECT_THAT(test.out, HasSubstr("net: data/test_lmdb, 40 records"));
  ExpectRefused(job, run({"--resume=auto"}), 64, "--snapshot and --resume need --solver");
  ExpectRefused(job, run({"--batch=3"}), 64, "--batch and --memory need --solver");
  ExpectRefused(job, run({"--solver=solver.prototxt"}), 64, "'trainer check' needs either ");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(CheckMemoryTest, NamesWhatARunTooLargeForTheMachineIsMadeOf) {
  CheckJob job;
  job.net = Edited(job.net, "num_output: 10", "num_output: 1000000");
  job.Write();
  RunOptions options = job.options();
  options.memory_limit = size_t{4} << 30;
  const Outcome outcome = RunProgram({"check", "--solver=solver.prototxt"}, options);
  EXPECT_EQ(outcome.exit_code, 81) << outcome.out << outcome.err;
  EXPECT_THAT(
      Lines(outcome, "error: "),
      ElementsAre(AllOf(HasSubstr("ulimit -v has 4.00 GiB; the largest parts: copy for snapshots"),
                        HasSubstr("Lower batch_size or prefetch"))));
}
#endif

}  // namespace
}  // namespace trainer
