// Tests when and how a run scales its loss.

#include "loss_scale.h"

#include <gtest/gtest.h>

#include "solver/small_run.h"

namespace trainer {
namespace {

std::optional<LossScaleOptions> OptionsOf(const std::string& solver, const std::string& net,
                                          bool needs) {
  SmallRun run("base_lr: 0.1 lr_policy: \"fixed\" max_iter: 1 " + solver, net + SmallNet());
  return LossScaleOf(run.spec, needs);
}

TEST(LossScaleTest, SolverAndNetSayHow) {
  EXPECT_FALSE(OptionsOf("", "", false));
  EXPECT_FALSE(OptionsOf("", "global_grad_scale: 1000 ", false)) << "nothing needs it";
  const auto by_default = OptionsOf("", "", true);
  ASSERT_TRUE(by_default);
  EXPECT_EQ(by_default->factor, 65536);
  EXPECT_FALSE(by_default->fixed);
  EXPECT_EQ(by_default->window, 2000u);
  const auto of_solver =
      OptionsOf("loss_scale: 128 loss_scale_window: 7 ", "global_grad_scale: 1000 ", true);
  EXPECT_EQ(of_solver->factor, 128);
  EXPECT_TRUE(of_solver->fixed);
  EXPECT_EQ(of_solver->window, 7u);
  const auto of_net = OptionsOf("", "global_grad_scale: 1000 ", true);
  EXPECT_EQ(of_net->factor, 1000);
  EXPECT_TRUE(of_net->fixed);
  const auto adaptive =
      OptionsOf("", "global_grad_scale: 1000 global_grad_scale_adaptive: true ", true);
  EXPECT_EQ(adaptive->factor, 1000);
  EXPECT_FALSE(adaptive->fixed);
  EXPECT_FALSE(OptionsOf("loss_scale: 0 ", "global_grad_scale: 1000 ", false)->fixed);
}

}  // namespace
}  // namespace trainer
