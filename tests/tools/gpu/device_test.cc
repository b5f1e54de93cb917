// --gpu, solver_mode and similar options on a machine without a GPU; gpu_train_test.cc has one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"
#include "support/json_reader.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// Expects this exit code and one line.
void ExpectOne(const Outcome& outcome, int code, const std::string& start, const std::string& end) {
  EXPECT_EQ(outcome.exit_code, code) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(StartsWith(start), EndsWith(end))));
}

TEST(GpuFlagTest, OfEveryVerbThatComputesNamesWhatIsMissing) {
  const Job job;
  job.Write();
  ASSERT_EQ(job.Train({"--set", "max_iter=1"}).exit_code, 0);
  ASSERT_EQ(
      RunHere({"deploy", "--model=net.prototxt", "--out=deploy.prototxt"}, job.options()).exit_code,
      0);
  const std::string weights = "--weights=snap_iter_1.caffemodel";
  for (const std::vector<std::string>& command : {
           std::vector<std::string>{"train", "--solver=solver.prototxt"},
           {"test", "--model=net.prototxt", weights},
           {"time", "--model=net.prototxt"},
           {"time", "--solver=solver.prototxt"},
           {"features", "--model=net.prototxt", weights, "--blobs=ip", "--out=ip.h5"},
           {"predict", "--model=deploy.prototxt", weights, "image.png"},
           {"inspect", "--model=deploy.prototxt", weights, "--out=page.html", "image.png"},
       }) {
    std::vector<std::string> asking = command;
    asking.push_back("--gpu=0");
    ExpectOne(RunHere(asking, job.options()), 69, "--gpu=0: this build has no CUDA",
              "; leave out --gpu to compute on the CPU");
    asking.back() = "--gpu=all";
    ExpectOne(RunHere(asking, job.options()), 69, "--gpu=all: this build has no CUDA", "");
  }
  EXPECT_THAT(job.Files("."), testing::IsEmpty());
  ExpectOne(RunHere({"device_query", "--gpu=0"}), 69, "this build has no CUDA", "");
}

TEST(GpuFlagTest, IsAFindingOfCheckWhichGoesOn) {
  Job job;
  job.net = Edited(job.net, "data/test_lmdb", "data/absent");
  job.Write();
  const Outcome outcome = RunHere({"check", "--solver=solver.prototxt", "--gpu=0"}, job.options());
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.out, HasSubstr("error: --gpu=0: this build has no CUDA"));
  EXPECT_THAT(outcome.out, HasSubstr("data/absent"));
  EXPECT_THAT(outcome.out, HasSubstr("\ncheck: 2 errors"));
}

TEST(DeviceQueryTest, PrintsJson) {
  const Outcome outcome = RunHere({"device_query", "--json"});
  EXPECT_EQ(outcome.exit_code, 0);
  const JsonValue json = ReadJson(outcome.out);
  EXPECT_THAT(json["device"].text, StartsWith("CPU, 1 thread, "));
  EXPECT_EQ(json["cuda"]["built"].text, "false");
  EXPECT_THAT(json["cuda"]["missing"][0].text, StartsWith("this build has no CUDA"));
}

}  // namespace
}  // namespace trainer
