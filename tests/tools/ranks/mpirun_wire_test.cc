// Gradients that are sent between machines in 16 bits. Ranks of one machine simulate two machines.

#include <regex>

#include "rank_job.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class WireTest : public RankJob {
 protected:
  void SetUp() override {
    if (std::system("mpirun --version >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "there is no mpirun here";
    }
  }

  // Returns the last loss in the log.
  static double LastLoss(const Outcome& outcome) {
    static const std::regex pattern("Iteration \\d+.*, loss = ([-+.\\w]+)");
    double loss = -1;
    const auto end = std::sregex_iterator();
    for (auto at = std::sregex_iterator(outcome.err.begin(), outcome.err.end(), pattern); at != end;
         ++at) {
      loss = std::stod((*at)[1]);
    }
    return loss;
  }
};

TEST_F(WireTest, LearnsAsIn32BitsAndSaysWhatItSent) {
  const std::vector<std::string> flags = {"--global_batch", "--set", "max_iter=100"};
  const Outcome plain = TrainOnTwo(flags);
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_THAT(plain.err,
              HasSubstr("Gradients are sent between machines as f32, 4 bytes per number"));
  const double loss = LastLoss(plain);
  EXPECT_GE(loss, 0);
  for (const char* type : {"f16", "bf16"}) {
    std::vector<std::string> rounded = flags;
    rounded.push_back(std::string("--exchange_type=") + type);
    const Outcome outcome = TrainOnTwo(rounded);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NEAR(LastLoss(outcome), loss, 0.02) << type;
    EXPECT_THAT(outcome.err, HasSubstr("with error feedback"));
    EXPECT_TRUE(std::regex_search(
        outcome.err, std::regex("Gradients sent to other machines by this rank: \\S+ MiB \\(\\S+ "
                                "MiB as f32\\)")))
        << outcome.err;
  }
}

TEST_F(WireTest, RepeatsBitForBitWhateverTheBucket) {
  for (const char* type : {"exchange_type=FLOAT16", "exchange_type=BFLOAT16"}) {
    ASSERT_EQ(TrainOnTwo({"--set", type}).exit_code, 0);
    const std::string weights = Bytes(kLast);
    ASSERT_EQ(TrainOnTwo({"--set", type, "--bucket_size=64"}).exit_code, 0);
    EXPECT_EQ(Bytes(kLast), weights) << type;
    ASSERT_EQ(TrainOnTwo({"--set", type, "--bucket_size=4"}).exit_code, 0);
    EXPECT_EQ(Bytes(kLast), weights) << type;
  }
}

TEST_F(WireTest, OfSeveralRanksOnEachMachineRepeatsToo) {
  const std::vector<std::string> flags = {"--exchange_type=bf16", "--global_batch"};
  ASSERT_EQ(TrainOnTwo(flags, 2).exit_code, 0);
  const std::string weights = Bytes(kLast);
  ASSERT_EQ(TrainOnTwo(flags, 2).exit_code, 0);
  EXPECT_EQ(Bytes(kLast), weights);
}

// A snapshot clears the rounding errors that are carried over, both in the continuing run and in a
// resumed one.
TEST_F(WireTest, GoesOnFromASnapshotBitForBit) {
  for (const char* type : {"--exchange_type=f16", "--exchange_type=bf16"}) {
    ASSERT_EQ(TrainOnTwo({type}).exit_code, 0);
    const std::string weights = Bytes(kLast), state = Bytes("snap_iter_20.solverstate");
    ASSERT_EQ(TrainOnTwo({type, "--snapshot=snap_iter_10.solverstate"}).exit_code, 0);
    EXPECT_EQ(Bytes(kLast), weights) << type;
    EXPECT_EQ(Bytes("snap_iter_20.solverstate"), state) << type;
  }
}

TEST_F(WireTest, FindsDivergence) {
  for (const char* type : {"--exchange_type=f16", "--exchange_type=bf16"}) {
    const Outcome outcome = TrainOnTwo({type, "--set", "base_lr=1e30"});
    EXPECT_EQ(outcome.exit_code, 80) << outcome.err;
    EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("the loss is")));
  }
}

TEST_F(WireTest, HasNoEffectOnOneMachine) {
  ASSERT_EQ(Train({"--ranks=2"}).exit_code, 0);
  const std::string weights = Bytes(kLast);
  const Outcome outcome = Train({"--ranks=2", "--exchange_type=f16"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Bytes(kLast), weights);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("exchange_type f16 has no effect: these ranks share the "
                                           "memory of one machine"),
                                 Not(HasSubstr("Gradients sent to"))));
}

}  // namespace
}  // namespace trainer
