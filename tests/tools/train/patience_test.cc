// patience: how a run ends, also with several ranks, and what the next run does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// With a rate of 0 and tests of the whole set, no test is better than the one at iteration 10.
class PatienceTest : public testing::Test {
 protected:
  PatienceTest() {
    job_.solver = Edited(job_.solver, "base_lr: 0.05", "base_lr: 0\npatience: 2");
    job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 100");
    job_.solver = Edited(job_.solver, "test_iter: 3", "test_iter: 5");
    job_.net = Edited(job_.net, "test_lmdb\" backend: LMDB batch_size: 16",
                      "test_lmdb\" backend: LMDB batch_size: 8");
    job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 0");
  }
  void ExpectEndedAt30(const Outcome& outcome) const {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("The last 2 tests did not improve accuracy (patience: 2): "
                                       "the best was "));
    EXPECT_THAT(outcome.err, HasSubstr(" at iteration 10, the last "));
    EXPECT_THAT(job_.Files("snap_iter_"),
                ElementsAre("snap_iter_30.caffemodel", "snap_iter_30.solverstate"));
  }

  Job job_;
};

TEST_F(PatienceTest, EndsTheRunWithZeroAndTheNextOneAtOnce) {
  ExpectEndedAt30(job_.Train());
  ExpectEndedAt30(job_.Train({"--resume=auto"}));
  const Outcome on = job_.Train({"--resume=auto", "--set", "patience=0", "--set", "max_iter=40"});
  EXPECT_EQ(on.exit_code, 0) << on.err;
  EXPECT_THAT(job_.Files("snap_iter_40.caffemodel"), testing::SizeIs(1));
}

TEST_F(PatienceTest, RanksEndTogether) {
  ExpectEndedAt30(job_.TrainAsProcess({"--ranks=2", "--global_batch"}));
}

}  // namespace
}  // namespace trainer
