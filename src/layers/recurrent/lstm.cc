#include "recurrent/lstm_cell.h"
#include "recurrent/recurrent.h"

namespace trainer {
namespace {

// Long short-term memory without peepholes: LstmCell for each step, with the states h and c.
// Source: Hochreiter and Schmidhuber, Neural Computation 9, 1997; the gates as in Caffe's LSTMLayer
// (Donahue et al., arXiv:1411.4389).
class Lstm final : public RecurrentLayer {
 public:
  explicit Lstm(const LayerSpec& spec) : RecurrentLayer(spec, 4, 2) {}

 protected:
  void Step(const RunContext& run, int64_t t) override {
    MapRows(run.device(), sequences(), width(),
            LstmCell{Gates(run, t), State(run, 1, t), Cont(run, t), Gates(run, t),
                     State(run, 1, t + 1), State(run, 0, t + 1)});
  }

  void Output(const RunContext& run) override {
    const int64_t count = run.Output(0).Count();
    run.device().Copy(BlockCopy(sizeof(float), 1, count, 0, 0), State(run, 0, 1),
                      run.Output(0).data);
  }

  const float* OutputBackward(const RunContext& run) override { return run.GradOutput(0).f32(); }

  void StepBackward(const RunContext& run, int64_t t, const float* dh) override {
    MapRows(run.device(), sequences(), width(),
            LstmCellGradient{Gates(run, t), State(run, 1, t), State(run, 1, t + 1), Cont(run, t),
                             dh, Carry(run, 0), Carry(run, 1), DGates(run, t), Carry(run, 1)});
  }
};

const RegisterLayer<Lstm> kLstm(
    "LSTM",
    {.text =
         "Long short-term memory (LSTM) over sequences, trained by backpropagation through time.\n"
         "bottoms: x (T, N, ...); cont (T, N), the factor on the previous state: 0 at the start "
         "of a sequence, else 1; optionally a static input (N, ...), used in every step. top: h "
         "(T, N, num_output).\n"
         "  i, f, o = logistic, g = tanh of W_xc x + b_c + W_xc_static s + W_hc (cont * h);\n"
         "  c = cont * f * c + i * g; h = o * tanh(c).\n"
         "The state after the last step is the initial state of the next pass; gradients stop "
         "there. A snapshot stores it. With expose_hidden, the states h and c, (1, N, num_output) "
         "each, are two more bottoms and two more tops instead.\n"
         "Parameters, gates in the order i, f, o, g: W_xc (4 * num_output, K), b_c, W_xc_static "
         "if there is a static input, W_hc (4 * num_output, num_output).",
     .param = "recurrent_param",
     .arity = {.min_in = 2, .max_in = 5, .min_out = 1, .max_out = 3}});

}  // namespace
}  // namespace trainer
