// Compares the whole log of training, line by line, with tests/golden/logs: scripts read these
// lines, and their order shows how a run is prepared. Numbers with a fraction are masked, since
// processors differ in their last digits. TRAINER_UPDATE_LOGS=1 writes the files anew.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "gpu_job.h"
#include "job.h"
#include "support/source_folder.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Masks memory, speed and the number of processors, which depend on the machine.
std::string Masked(const std::string& line) {
  static const std::pair<std::regex, std::string> masks[] = {
      {std::regex(R"(\d+(\.\d+)?e[-+]?\d+|\d+\.\d+)"), "#"},
      {std::regex(R"(\d+ threads?|affinity mask of \d+ CPUs?)"), "# threads"},
      {std::regex(R"(latency .*\), gradients in buckets of \d+ [KM]iB)"), "#)"},
      {std::regex(R"(  rank (\d) \(.*)"), "  rank $1 (HOST)"},
      {std::regex(R"(# (seconds|ms|us|[KMG]iB(/s)?|GB/s))"), "# UNIT"}};
  std::string masked = line;
  for (const auto& [pattern, text] : masks) masked = std::regex_replace(masked, pattern, text);
  return masked;
}

void ExpectLog(const std::string& name, const Outcome& outcome) {
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::string log;
  for (const std::string& line : LogFrom(outcome, "] ")) {
    if (line.find("Ranks: ") == std::string::npos) log += Masked(line) + "\n";
  }
  const std::string path = SourceFolder() + "/tests/golden/logs/" + name + ".txt";
  if (std::getenv("TRAINER_UPDATE_LOGS") != nullptr) WriteText(path, log);
  EXPECT_EQ(log, ReadText(path)) << "TRAINER_UPDATE_LOGS=1 writes " << path << " anew";
}

// The batches of each test hold each record once, so that no rank warns.
class WholeTestsJob : public Job {
 public:
  WholeTestsJob() {
    solver = Edited(solver, "test_iter: 3", "test_iter: 2");
    net = Edited(net, "data/test_lmdb\" backend: LMDB batch_size: 16",
                 "data/test_lmdb\" backend: LMDB batch_size: 20");
  }
};

TEST(LogGoldenTest, OfARunAloneAndResumed) {
  const WholeTestsJob job;
  ExpectLog("alone", job.Train());
  ExpectLog("resumed", job.Train({"--snapshot=snap_iter_10.solverstate"}));
  ExpectLog("finished", job.Train({"--resume=auto"}));
}

TEST(LogGoldenTest, OfTwoRanks) {
  ExpectLog("ranks", WholeTestsJob().TrainAsProcess({"--ranks=2"}));
}

TEST(LogGoldenTest, OfARunOnAGpu) {
  if (!HasEmulatedGpu()) GTEST_SKIP() << "this build has no emulated GPU";
  const GpuJob job;
  job.Write();
  ExpectLog("gpu", job.Run(job.TrainCommand({"--gpu=0"})));
}

}  // namespace
}  // namespace trainer
