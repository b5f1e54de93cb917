#include "trainer/layers/cast.h"

namespace trainer {
namespace {

class Cast final : public Layer {
 public:
  explicit Cast(DType to) : to_(to) {}

  void Describe(DescribeContext& plan) override { plan.Out(0, plan.In(0), to_); }
  void Forward(const RunContext& run) override { run.device().Convert(run.In(0), run.Out(0)); }
  void Backward(const RunContext& run) override {
    run.device().Convert(run.GradOut(0), run.GradIn(0));
  }

 private:
  DType to_;
};

}  // namespace

std::unique_ptr<Layer> MakeCast(DType to) { return std::make_unique<Cast>(to); }

}  // namespace trainer
