#include "trainer/layers/cast.h"

namespace trainer {
namespace {

// The layer that MakeCast describes.
class Cast final : public Layer {
 public:
  explicit Cast(DType to) : to_(to) {}

  void Setup(SetupContext& ctx) override { ctx.Output(0, ctx.Input(0), to_); }
  void Forward(const RunContext& run) override {
    run.device().Convert(run.Input(0), run.Output(0));
  }
  void Backward(const RunContext& run) override {
    run.device().Convert(run.GradOutput(0), run.GradInput(0));
  }

 private:
  DType to_;
};

}  // namespace

std::unique_ptr<Layer> MakeCast(DType to) { return std::make_unique<Cast>(to); }

}  // namespace trainer
