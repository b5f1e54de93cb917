#include "recurrent/recurrent.h"
#include "trainer/backend/loops/math.h"

namespace trainer {
namespace {

// Returns tanh(x).
struct TanhOf {
  HD float operator()(float x) const { return Tanh(x); }
};

// Computes dx of y = tanh(x), where dy is the sum of one or two terms; a null term counts as 0.
struct TanhGradient {
  const float *dy, *dy_more, *y;
  float* dx;
  HD void operator()(int64_t i) const {
    const float d = (dy == nullptr ? 0.0f : dy[i]) + (dy_more == nullptr ? 0.0f : dy_more[i]);
    dx[i] = d * (1 - y[i] * y[i]);
  }
};

// A plain recurrent network: h_t = tanh(gates_t), with one gate, and y_t = tanh(W_o h_t + b_o), one
// product for all steps.
class Rnn final : public RecurrentLayer {
 public:
  explicit Rnn(const LayerSpec& spec) : RecurrentLayer(spec, 1, 1) {}

 protected:
  void SetupOutput(SetupContext& ctx) override {
    const caffe::RecurrentParameter& param = spec().proto().recurrent_param();
    const int64_t all = steps() * sequences(), h = width();
    ctx.Param("weight_o", {h, h}, param.weight_filler());
    ctx.Param("bias_o", {h}, param.bias_filler());
    ctx.SaveOutput(0);
    if (!ctx.training()) return;
    sums_at_ = TakeScratch(all * h);
    hidden_at_ = TakeScratch(all * h);
  }

  void PrepareOutput(PrepareContext& ctx) override {
    const int64_t all = steps() * sequences(), h = width();
    output_ = MakeProduct(ctx, {.m = all, .n = h, .k = h, .trans_b = true, .bias = true});
    if (!ctx.training()) return;
    weight_gradient_ =
        MakeProduct(ctx, {.m = h, .n = h, .k = all, .trans_a = true, .accumulate = true});
    hidden_gradient_ = MakeProduct(ctx, {.m = all, .n = h, .k = h});
  }

  void Step(const RunContext& run, int64_t t) override {
    const Shape shape = {sequences(), width()};
    Map(run.device(), TanhOf{}, Tensor{State(run, 0, t + 1), shape},
        ConstTensor(Gates(run, t), shape));
  }

  void Output(const RunContext& run) override {
    const int first = FirstOutputParam();
    output_->Run(State(run, 0, 1), run.Param(first), run.Param(first + 1), run.Output(0).data,
                 Rest(run));
    Map(run.device(), TanhOf{}, run.Output(0), run.Output(0));
  }

  const float* OutputBackward(const RunContext& run) override {
    const int first = FirstOutputParam();
    const int64_t all = steps() * sequences();
    float* const sums = At(run, sums_at_);
    ForEach(run.device(), run.Output(0).Count(),
            TanhGradient{run.GradOutput(0).f32(), nullptr, run.Output(0).f32(), sums});
    if (run.GradParam(first) != nullptr) {
      weight_gradient_->Run(sums, State(run, 0, 1), nullptr, run.GradParam(first), Rest(run));
    }
    if (run.GradParam(first + 1) != nullptr) {
      const ConstTensor rows(sums, {all, width()});
      run.device().AddChannelSums(ChannelSumsDesc::Of(rows.shape, 1), rows, nullptr,
                                  run.GradParam(first + 1));
    }
    hidden_gradient_->Run(sums, run.Param(first), nullptr, At(run, hidden_at_), Rest(run));
    return At(run, hidden_at_);
  }

  void StepBackward(const RunContext& run, int64_t t, const float* dh) override {
    ForEach(run.device(), sequences() * width(),
            TanhGradient{dh, Carry(run, 0), State(run, 0, t + 1), DGates(run, t)});
  }

 private:
  std::unique_ptr<GemmPrimitive> output_, weight_gradient_, hidden_gradient_;
  int64_t sums_at_ = 0, hidden_at_ = 0;  // scratch: gradients of W_ho h + b_o and of h
};

const RegisterLayer<Rnn> kRnn(
    "RNN",
    {.text =
         "A plain recurrent network over sequences, trained by backpropagation through time.\n"
         "bottoms: x (T, N, ...); cont (T, N), the factor on the previous state: 0 at the start "
         "of a sequence, else 1; optionally a static input (N, ...), used in every step. top: (T, "
         "N, num_output).\n"
         "  h = tanh(W_hh (cont * h) + W_xh x + b_h + W_xh_static s); top = tanh(W_ho h + b_o).\n"
         "The state h after the last step is the initial state of the next pass; gradients stop "
         "there. A snapshot stores it. With expose_hidden, the state (1, N, num_output) is one "
         "more bottom and one more top instead.\n"
         "Parameters: W_xh (num_output, K), b_h, W_xh_static if there is a static input, W_hh "
         "(num_output, num_output), W_ho (num_output, num_output), b_o.",
     .param = "recurrent_param",
     .arity = {.min_in = 2, .max_in = 4, .min_out = 1, .max_out = 2}});

}  // namespace
}  // namespace trainer
