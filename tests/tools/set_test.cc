// --set: changes from the command line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(SetTest, TrainsWithTheChangesAndWritesWhatWasInForce) {
  const Job job;
  job.Write();
  const Outcome outcome = job.Train(
      {"--set", "max_iter=3", "--set=layer[digits,TRAIN].data_param.batch_size=8", "--log=caffe"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Top shape: 8 1 28 28"));
  const std::vector<std::string> written = job.Files("snap_resolved");
  ASSERT_EQ(written.size(), 1u);
  const std::string resolved = ReadText(job.folder() / written[0]);
  EXPECT_THAT(resolved, HasSubstr("max_iter: 3\n"));
  EXPECT_THAT(resolved, HasSubstr("batch_size: 8\n"));
  EXPECT_THAT(job.Files("snap_iter_3.caffemodel"), Not(IsEmpty()));
  const std::string weights = ReadText(job.folder() / "snap_iter_3.caffemodel");
  const Outcome again = RunHere({"train", "--solver=" + written[0]}, job.options());
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(ReadText(job.folder() / "snap_iter_3.caffemodel"), weights);
}

TEST(SetTest, OtherVerbsTakeIt) {
  const Job job;
  job.Write();
  const std::string set = "--set=layer[ip].inner_product_param.num_output=12";
  const Outcome plan = RunHere({"plan", "--model=net.prototxt", "--verbose", set}, job.options());
  EXPECT_THAT(plan.out, HasSubstr("16 12 (192)")) << plan.err;
  const Outcome typo =
      RunHere({"show", "--model=net.prototxt", "--set=layer[pi].name=x"}, job.options());
  ExpectRefused(job, typo, 64, "--set layer[pi].name=x: ", "Did you mean 'ip'?");
}

}  // namespace
}  // namespace trainer
