// Tests the reference of update rules and solver fields.

#include "trainer/analysis/summary/solver_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(SolverReferenceTest, ListsRulesAndFields) {
  const std::string text = SolverFieldsText();
  EXPECT_THAT(text, StartsWith("update rules (field type): AdaDelta, AdaGrad, Adam, AdamW, CD, "
                               "LARS, LBFGS,\nNesterov, RMSProp, SAG, SGD\n"));
  EXPECT_THAT(text, HasSubstr("\n  ema_decay "));
  EXPECT_THAT(SolverJson().ToString(), HasSubstr("\"name\": \"ema_decay\""));
}

TEST(SolverReferenceTest, ExplainsARuleOrAField) {
  EXPECT_THAT(SolverReference("Nesterov"), StartsWith("Nesterov\n\nv' = momentum * v + lr * g; "));
  EXPECT_EQ(SolverReference("warmup_iter"),
            "warmup_iter: int32, default 0\n\nWarm-up: iterations of a linear rise to the learning "
            "rate of lr_policy; 0: none.\n");
}

TEST(SolverReferenceTest, NamesTheNearestField) {
  const auto [code, message] = ErrorOf([] { SolverReference("warmup_itr"); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_EQ(message,
            "no solver field 'warmup_itr'. Did you mean 'warmup_iter'? 'trainer solver' lists the "
            "fields");
}

}  // namespace
}  // namespace trainer
