#include <algorithm>
#include <optional>

#include "rbm/contrastive_divergence.h"
#include "shared/checks.h"
#include "shared/skipped_kernels.h"
#include "trainer/backend/loops/map.h"
#include "trainer/backend/loops/reduce.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/record_error.h"

namespace trainer {
namespace {

constexpr char kRbmParam[] = "rbm_param";

// Reports visible unit i if it is not a probability, from 0 to 1.
struct NoProbability {
  const float* visible;
  InputErrorFlag fault;
  HD void operator()(int64_t i) const {
    const float v = visible[i];
    if (!(v >= 0 && v <= 1)) fault.Report(i, v);
  }
};

// Returns the gradient of the input of mean = logistic(input).
struct LogisticGradient {
  HD float operator()(float dy, float mean) const { return dy * mean * (1 - mean); }
};

// Returns term i of the reconstruction error, (a_i - b_i)^2.
struct RbmSquaredDifference {
  const float *a, *b;
  HD float operator()(int64_t i) const { return (a[i] - b[i]) * (a[i] - b[i]); }
};

// A restricted Boltzmann machine: the means h = s(v W^T + c) of its hidden units, or with output
// VISIBLE (`down_`) v = s(h W + b), or draws from these means. Top 1 is the reconstruction error.
// If it has a loss_weight, Backward adds the gradient of contrastive divergence
// (contrastive_divergence.h).
class Rbm final : public Layer {
 public:
  Rbm(const LayerSpec& spec, const LayerEnv& env) : spec_(spec), chain_(env.chain) {
    const caffe::RBMParameter& param = spec.proto().rbm_param();
    down_ = param.output() == caffe::RBMParameter::VISIBLE;
    sample_ = param.sample();
    units_.gaussian = param.visible() == caffe::RBMParameter::GAUSSIAN;
    if (down_ && spec.proto().top_size() > 1) {
      spec.Fail("top",
                "with output VISIBLE the only top is the visible units; the reconstruction error "
                "and the free energy need a layer with output HIDDEN",
                1);
    }
    if (spec.proto().loss_weight_size() > 2 && spec.proto().loss_weight(2) != 0) {
      spec.Fail("loss_weight",
                "the third top, the free energy, is only reported, so its loss_weight must be 0; "
                "to train the RBM, give the second top a loss_weight",
                2);
    }
  }

  // Throws kConfig if the top would be an image, whose memory order the products do not have.
  void Setup(SetupContext& ctx) override {
    ctx.UsesRandom();
    const caffe::RBMParameter& param = spec_.proto().rbm_param();
    const Shape& in = ctx.Input(0);
    const int axis = AxisIn(spec_, kRbmParam, "axis", param.axis(), in);
    records_ = in.Count(0, axis);
    ReadUnits(in.Count(axis));
    plain_in_ = IsNhwc(in);
    const int64_t made[] = {down_ ? units_.visible : units_.hidden};
    const Shape out = in.Replace(axis, in.Rank(), made);
    if (IsNhwc(out)) {
      spec_.FailIn(kRbmParam, "axis",
                   Join("the top would have shape ", Dims(out),
                        ", an image; use axis 1, or put a Reshape layer before"));
    }
    ctx.Param("weight", {units_.hidden, units_.visible}, param.weight_filler());
    ctx.Param("hidden bias", {units_.hidden}, param.hidden_bias_filler());
    ctx.Param("visible bias", {units_.visible}, param.visible_bias_filler());
    ctx.Output(0, out);
    for (int i = 1; i < ctx.NumOutputs(); ++i) ctx.Output(i, {});
    reports_ = ctx.NumOutputs() > 1;
    ctx.SaveInput(0);
    if (!sample_) ctx.SaveOutput(0);
    SetupMemory(ctx);
  }

  void Prepare(PrepareContext& ctx) override {
    const Device& device = ctx.device();
    products_.emplace(device, units_, records_);
    size_t most = products_->ScratchBytes();
    if (divergence_) {
      divergence_->Prepare(device);
      most = std::max(most, divergence_->ScratchBytes());
    }
    if (ctx.training()) {
      weight_gradient_ = device.NewGemm({.m = units_.hidden,
                                         .n = units_.visible,
                                         .k = records_,
                                         .trans_a = true,
                                         .accumulate = true});
      input_gradient_ = device.NewGemm({.m = records_,
                                        .n = down_ ? units_.hidden : units_.visible,
                                        .k = down_ ? units_.visible : units_.hidden,
                                        .trans_b = down_});
      most = std::max({most, weight_gradient_->ScratchBytes(), input_gradient_->ScratchBytes()});
    }
    ctx.Scratch(scratch_.Bytes() + most);
  }

  // Computes the means, then the draws (sample), the free energy (top 2) and the reconstruction
  // (top 1). BERNOULLI inputs outside [0, 1] are reported.
  void Forward(const RunContext& run) override {
    const Device& device = run.device();
    const std::span<std::byte> rest = scratch_.Tail(run.Scratch());
    const bool gaussian = down_ && units_.gaussian;
    const float* const x = PlainInput(run);
    float *const means = Means(run), *const out = run.Output(0).f32();
    if (!down_ && !units_.gaussian) {
      ForEach(device, run.Input(0).Count(), NoProbability{run.Input(0).f32(), run.input_error()});
    }
    if (down_) {
      products_->VisibleInputs(WeightsOf(run), x, means, rest);
    } else {
      products_->HiddenInputs(WeightsOf(run), x, means, rest);
      if (run.NumOutputs() > 2) {
        MeanFreeEnergy(device, units_, records_, x, run.Param(2), means, run.Output(2).f32());
      }
    }
    UnitMeans(device, gaussian, means, OutCount());
    const UnitDraw draw{run.rng_key(), run.pass_counter()};
    if (sample_) DrawUnits(device, gaussian, draw, means, out, OutCount());
    if (!reports_) return;
    float* const drawn = sample_ ? out : drawn_.At(run.Scratch());
    if (!sample_) DrawUnits(device, false, draw, means, drawn, OutCount());
    Reconstruct(run, x, drawn, rest);
  }

  void Backward(const RunContext& run) override {
    const std::span<std::byte> rest = scratch_.Tail(run.Scratch());
    if (run.HasGradOutput(0)) {
      PropagateMeans(run, rest);
    } else if (run.NeedsGradInput(0)) {
      run.device().Zero(run.GradInput(0).data, run.GradInput(0).Bytes());
    }
    if (divergence_ && run.HasGradOutput(1)) {
      divergence_->AddGradient(run, WeightsOf(run), Means(run), run.GradOutput(1).f32(), rest);
    }
  }

  [[noreturn]] void ThrowInputError(const RunContext& run, int64_t index,
                                    float number) const override {
    const Shape& shape = run.Input(0).shape;
    const int64_t item = index / std::max<int64_t>(1, shape.Count() / shape[0]);
    try {
      spec_.FailWith(
          ErrorCode::kData,
          Join("visible unit ", number, " of item ", item,
               " of the batch is not a probability: BERNOULLI units must be from 0 to 1; scale the "
               "data (transform_param { scale: 0.00390625 }), or set visible: GAUSSIAN"));
    } catch (const Error& error) {
      throw RecordError(error, 0, item);
    }
  }

  // Returns the kernel of the product with W^T, also with output VISIBLE, which runs the other one.
  std::string kernel() const override { return products_->up().kernel(); }
  std::vector<std::string> skipped_kernels() const override {
    std::vector<std::string> lines = products_->up().skipped_kernels();
    AppendSkippedKernels("visible units", &products_->down(), &lines);
    AppendSkippedKernels("weight gradient", weight_gradient_.get(), &lines);
    AppendSkippedKernels("data gradient", input_gradient_.get(), &lines);
    if (divergence_) divergence_->AppendSkipped(&lines);
    return lines;
  }
  int64_t Macs() const override { return records_ * units_.visible * units_.hidden; }

 private:
  // Returns the number of units in output 0.
  int64_t OutCount() const { return records_ * (down_ ? units_.visible : units_.hidden); }

  // Sets the numbers of visible and hidden units, from the `inputs` units per record of the bottom
  // and the size of the top. Throws kConfig if a size is missing or contradicts the bottom.
  void ReadUnits(int64_t inputs) {
    const caffe::RBMParameter& param = spec_.proto().rbm_param();
    const std::string field = down_ ? "num_visible" : "num_output";
    const int64_t made = down_ ? param.num_visible() : param.num_output();
    if (made < 1) {
      spec_.FailIn(kRbmParam, field,
                   Join(field, " must be at least 1: it is the number of ",
                        down_ ? "visible" : "hidden", " units"));
    }
    if (down_ && param.has_num_output() && param.num_output() != inputs) {
      spec_.FailIn(kRbmParam, "num_output",
                   Join("num_output is ", param.num_output(), ", but the bottom has ", inputs,
                        " hidden units per record"));
    }
    units_.hidden = down_ ? inputs : made;
    units_.visible = down_ ? made : inputs;
  }

  // The workspace holds the batch and the chains of contrastive divergence, or the batch in
  // row-major order if its memory has another order; and the means if the output holds draws.
  // Scratch holds the gradient of the units' inputs; the drawn hidden units, and the visible means
  // that they give.
  void SetupMemory(SetupContext& ctx) {
    ScratchLayout workspace, state;
    divergence_.reset();
    if (ctx.training() && reports_ && spec_.proto().loss_weight_size() > 1 &&
        spec_.proto().loss_weight(1) != 0) {
      divergence_.emplace(chain_, units_, records_, workspace, state);
    }
    const bool copies = plain_in_ && !divergence_;
    plain_ = workspace.Add<float>(copies ? ctx.Input(0).Count() : 0);
    means_ = workspace.Add<float>(sample_ ? OutCount() : 0);
    ctx.Workspace(workspace.Bytes());
    ctx.State(state.Bytes());
    scratch_ = {};
    drawn_ = scratch_.Add<float>(
        std::max(reports_ && !sample_ ? OutCount() : 0, ctx.training() ? OutCount() : 0));
    visible_means_ = scratch_.Add<float>(
        std::max(reports_ ? records_ * units_.visible : 0, plain_in_ ? ctx.Input(0).Count() : 0));
  }

  BoltzmannWeights WeightsOf(const RunContext& run) const {
    return {run.Param(0), run.Param(1), run.Param(2)};
  }
  // Returns the means of the units of output 0: the output itself, unless it holds draws.
  float* Means(const RunContext& run) const {
    return sample_ ? means_.At(run.Workspace()) : run.Output(0).f32();
  }

  // Returns the input in row-major order, for Forward.
  const float* PlainInput(const RunContext& run) const {
    const bool copies = divergence_ || plain_in_;
    if (!copies) return run.Input(0).f32();
    float* const plain = divergence_ ? divergence_->Visible(run) : plain_.At(run.Workspace());
    CopyToNchw(run.device(), run.Input(0), plain);
    return plain;
  }
  // Returns that input in Backward, without copying it again.
  const float* KeptInput(const RunContext& run) const {
    if (divergence_) return divergence_->Visible(run);
    return plain_in_ ? plain_.At(run.Workspace()) : run.Input(0).f32();
  }

  // Computes top 1, sum (v - v')^2 / N, where v' are the visible means for the drawn `hidden`
  // units. CD starts its chains at v', so it is written to their memory.
  void Reconstruct(const RunContext& run, const float* visible, const float* hidden,
                   std::span<std::byte> rest) const {
    float* means = divergence_ ? divergence_->FirstMeans(run) : nullptr;
    if (means == nullptr) means = visible_means_.At(run.Scratch());
    const int64_t count = records_ * units_.visible;
    products_->VisibleInputs(WeightsOf(run), hidden, means, rest);
    UnitMeans(run.device(), units_.gaussian, means, count);
    ReduceSum(run.device(), count, RbmSquaredDifference{visible, means},
              1 / static_cast<float>(records_), run.Output(1).f32());
  }

  // Propagates the gradient of the means, also if the output is drawn from them.
  void PropagateMeans(const RunContext& run, std::span<std::byte> rest) const {
    const Device& device = run.device();
    const float* const dy = run.GradOutput(0).f32();
    const Shape rows{records_, down_ ? units_.visible : units_.hidden};
    const float* dz = dy;
    if (!(down_ && units_.gaussian)) {
      float* const to = drawn_.At(run.Scratch());
      Map(device, LogisticGradient{}, Tensor(to, rows), ConstTensor(dy, rows),
          ConstTensor(Means(run), rows));
      dz = to;
    }
    if (run.GradParam(0) != nullptr) {
      const float* const x = KeptInput(run);
      weight_gradient_->Run(down_ ? x : dz, down_ ? dz : x, nullptr, run.GradParam(0), rest);
    }
    float* const dbias = run.GradParam(down_ ? 2 : 1);
    if (dbias != nullptr) {
      device.AddChannelSums(ChannelSumsDesc::Of(rows, 1), ConstTensor(dz, rows), nullptr, dbias);
    }
    if (!run.NeedsGradInput(0)) return;
    float* const plain = visible_means_.At(run.Scratch());
    input_gradient_->Run(dz, run.Param(0), nullptr, plain_in_ ? plain : run.GradInput(0).f32(),
                         rest);
    if (plain_in_) CopyFromNchw(device, plain, run.GradInput(0));
  }

  LayerSpec spec_;
  ChainOptions chain_;
  bool down_ = false, sample_ = false, plain_in_ = false;
  bool reports_ = false;  // whether it computes the reconstruction error
  BoltzmannUnits units_;
  int64_t records_ = 0;
  ScratchRegion<float> plain_, means_;
  ScratchLayout scratch_;
  ScratchRegion<float> drawn_, visible_means_;
  std::optional<ContrastiveDivergence> divergence_;
  std::optional<BoltzmannProducts> products_;
  std::unique_ptr<GemmPrimitive> weight_gradient_, input_gradient_;
};

const RegisterLayer<Rbm> kRbm(
    "RBM",
    {.text =
         "A restricted Boltzmann machine: the probabilities of its hidden units, or of its "
         "visible ones.\n"
         "With s(x) = 1 / (1 + e^-x) and v the bottom from `axis` on:  h = s(v W^T + c), (N, "
         "num_output). With output VISIBLE, h the bottom:  v = s(h W + b), (N, num_visible); of "
         "GAUSSIAN units v = h W + b. With sample, the top is drawn from these probabilities and "
         "passes their gradient.\n"
         "Parameters: W (hidden, visible), c (hidden), b (visible); layers share them by name.\n"
         "Output HIDDEN has two more tops. The reconstruction error is sum (v - v')^2 / N, where "
         "v' are the means after one step down from sampled hidden units. The last top is the "
         "mean free energy. With a loss_weight on the error (loss_weight: 0 loss_weight: 1), a "
         "solver of type \"CD\" trains the layer by contrastive divergence; the bottom gets no "
         "gradient from it.",
     .param = kRbmParam,
     .arity = {.max_out = 3}});

}  // namespace
}  // namespace trainer
