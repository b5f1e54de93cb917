#include "common/checks.h"
#include "common/lstm_cell.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

class LstmUnit final : public Layer {
 public:
  explicit LstmUnit(const LayerSpec& spec) : spec_(spec) {}

  void Describe(DescribeContext& plan) override {
    RequireF32(plan, spec_);
    const Shape& state = plan.In(0);
    if (state.Rank() != 3 || state[0] != 1) Refuse(plan, 0, "(1, N, H), a state");
    n_ = state[1];
    width_ = state[2];
    const Shape gates = {1, n_, 4 * width_}, cont = {1, n_};
    if (!(plan.In(1) == gates)) Refuse(plan, 1, Dims(gates) + ", four gates per state value");
    if (!(plan.In(2) == cont)) Refuse(plan, 2, Dims(cont) + ", 0 or 1 for each sequence");
    plan.Out(0, state);
    plan.Out(1, state);
    plan.KeepInput(0);
    plan.KeepInput(2);
    plan.KeepOutput(0);
    plan.NoGradient(2);
    plan.Workspace(static_cast<size_t>(gates.Count()) * sizeof(float));
  }

  void Forward(const RunContext& run) override {
    MapRows(run.device(), n_, width_,
            LstmCell{run.In(1).f32(), run.In(0).f32(), run.In(2).f32(), Active(run),
                     run.Out(0).f32(), run.Out(1).f32()});
  }

  void Backward(const RunContext& run) override {
    MapRows(run.device(), n_, width_,
            LstmCellGradient{Active(run), run.In(0).f32(), run.Out(0).f32(), run.In(2).f32(),
                             run.GradOut(1).f32(), nullptr, run.GradOut(0).f32(),
                             run.GradIn(1).f32(), run.GradIn(0).f32()});
  }

 private:
  [[noreturn]] void Refuse(DescribeContext& plan, int input, const std::string& wish) const {
    spec_.Fail("bottom",
               Join("bottom '", spec_.proto().bottom(input), "' has shape ", Dims(plan.In(input)),
                    ", but this layer needs ", wish),
               input);
  }
  static float* Active(const RunContext& run) {
    return reinterpret_cast<float*>(run.Workspace().data());
  }

  LayerSpec spec_;
  int64_t n_ = 0, width_ = 0;
};

const RegisterLayer<LstmUnit> kLstmUnit(
    "LSTMUnit",
    {.text = "One step of an LSTM: c = cont * f * c_prev + i * g; h = o * tanh(c).\n"
             "bottoms: c_prev (1, N, H); gates (1, N, 4 * H), for each sequence the inputs of i, "
             "f, o (logistic function) and g (tanh); cont (1, N), 0 at the start of a sequence, "
             "else 1. tops: c and h, (1, N, H) each. cont gets no gradient.",
     .param = "",
     .arity = {.min_in = 3, .max_in = 3, .min_out = 2, .max_out = 2}});

}  // namespace
}  // namespace trainer
