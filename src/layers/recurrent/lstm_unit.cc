#include "recurrent/lstm_cell.h"
#include "shared/checks.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// One step of an LSTM from given gate inputs: see LstmCell. The workspace keeps the activated
// gates.
class LstmUnit final : public Layer {
 public:
  explicit LstmUnit(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    const Shape& state = ctx.Input(0);
    if (state.Rank() != 3 || state[0] != 1) Refuse(ctx, 0, "(1, N, H), a state");
    n_ = state[1];
    width_ = state[2];
    const Shape gates = {1, n_, 4 * width_}, cont = {1, n_};
    if (!(ctx.Input(1) == gates)) Refuse(ctx, 1, Dims(gates) + ", four gates per state value");
    if (!(ctx.Input(2) == cont)) Refuse(ctx, 2, Dims(cont) + ", 0 or 1 for each sequence");
    ctx.Output(0, state);
    ctx.Output(1, state);
    ctx.SaveInput(0);
    ctx.SaveInput(2);
    ctx.SaveOutput(0);
    ctx.NotDifferentiable(2);
    ctx.Workspace(static_cast<size_t>(gates.Count()) * sizeof(float));
  }

  void Forward(const RunContext& run) override {
    MapRows(run.device(), n_, width_,
            LstmCell{run.Input(1).f32(), run.Input(0).f32(), run.Input(2).f32(), Active(run),
                     run.Output(0).f32(), run.Output(1).f32()});
  }

  void Backward(const RunContext& run) override {
    MapRows(
        run.device(), n_, width_,
        LstmCellGradient{Active(run), run.Input(0).f32(), run.Output(0).f32(), run.Input(2).f32(),
                         run.GradOutput(1).f32(), nullptr, run.GradOutput(0).f32(),
                         run.GradInput(1).f32(), run.GradInput(0).f32()});
  }

 private:
  // Throws kConfig for the shape of an input.
  [[noreturn]] void Refuse(SetupContext& ctx, int input, const std::string& wish) const {
    spec_.Fail("bottom",
               Join("bottom '", spec_.proto().bottom(input), "' has shape ", Dims(ctx.Input(input)),
                    ", but this layer needs ", wish),
               input);
  }
  // Returns the workspace: the activated gates (N, 4 H).
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
