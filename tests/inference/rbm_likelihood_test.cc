#include "trainer/inference/generative/rbm_likelihood.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inference/small_rbm.h"
#include "support/error_of.h"
#include "support/log_collector.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

TEST(RbmLikelihoodTest, TheEstimateIsNearTheExactSum) {
  SmallRbm small(12, 8);
  small.net.WriteNchw(std::vector<float>(48, 1), small.net.Value("x"));
  RbmLikelihoodOptions options;
  options.iterations = 3;
  options.exact = true;
  const RbmLikelihood exact = MeasureRbmLikelihood(small.net, options);
  EXPECT_NEAR(exact.data.free_energy, -small.LogP(std::vector<double>(12, 1)), 1e-4);
  EXPECT_EQ(exact.low(), exact.high());
  EXPECT_THAT(ToText(exact), StartsWith("rbm: 12 visible and 8 hidden units\n"));
  EXPECT_THAT(ToText(exact), HasSubstr(", the sum over all states\n"));
  EXPECT_THAT(ToText(exact), HasSubstr("the mean of 12 records in 3 batches\n"));
  options.exact = false;
  options.steps = 500;
  const LogCollector log;
  const RbmLikelihood estimated = MeasureRbmLikelihood(small.net, options);
  EXPECT_NEAR(estimated.log_likelihood(), exact.log_likelihood(), 0.2);
  EXPECT_LT(estimated.low(), exact.log_likelihood());
  EXPECT_GT(estimated.high(), exact.log_likelihood());
  EXPECT_THAT(ToText(estimated), HasSubstr(" within three (100 chains, 500 distributions)\n"));
  EXPECT_THAT(ToJson(estimated).ToLine(), HasSubstr("\"records\": 12"));
  EXPECT_THAT(log.lines, Contains(HasSubstr("over 500 distributions (--chains, --steps); "
                                            "--iterations=3 sets only the number of test "
                                            "batches")));
}

TEST(RbmLikelihoodTest, NamesTheLayersToChooseFrom) {
  SmallRbm small(3, 2);
  RbmLikelihoodOptions options;
  options.layer = "rmb";
  const auto [code, message] = ErrorOf([&] { MeasureRbmLikelihood(small.net, options); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(message, HasSubstr("--layer=rmb is not an RBM layer. Did you mean 'rbm'?"));
  RbmModel other = small.rbm;
  other.name = "top";
  EXPECT_EQ(SelectRbm({small.rbm, other}, "top").name, "top");
  EXPECT_THAT(ErrorOf([&] {
                SelectRbm({small.rbm, other}, "");
              }).second,
              HasSubstr("choose one with --layer: rbm, top"));
  EXPECT_EQ(ErrorOf([] { SelectRbm({}, ""); }).first, ErrorCode::kConfig);
}

}  // namespace
}  // namespace trainer
