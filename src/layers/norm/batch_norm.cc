#include "norm/all_reduced_moments.h"
#include "norm/batch_norm_blobs.h"
#include "shared/checks.h"
#include "shared/plain_relu.h"
#include "trainer/backend/loops/map.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns true if `next` is an Eltwise that sums two inputs without coefficients.
bool IsPlainSum(const LayerSpec& next) {
  const caffe::EltwiseParameter& param = next.proto().eltwise_param();
  return param.operation() == caffe::EltwiseParameter::SUM && param.coeff_size() == 0 &&
         next.proto().bottom_size() == 2;
}

// y = (x - mean) / sqrt(variance + eps) per channel, with the moments of the batch in training and
// the stored averages in testing (or as use_global_stats says). With scale_bias, as in NVIDIA
// Caffe, y * scale + bias. Sources: Ioffe and Szegedy, arXiv:1502.03167; `synchronized`, the
// moments over all ranks: PyTorch's SyncBatchNorm.
class BatchNorm final : public Layer {
 public:
  explicit BatchNorm(const LayerSpec& spec) : spec_(spec) {
    const caffe::BatchNormParameter& param = spec_.proto().batch_norm_param();
    learned_ = LearnsScaleAndBias(param);
    eps_ = learned_ ? std::max(param.eps(), 1e-5f) : param.eps();
  }

  void Setup(SetupContext& ctx) override {
    const caffe::BatchNormParameter& param = spec_.proto().batch_norm_param();
    RequireRank(ctx, spec_, 0, 2, Shape::kMaxAxes, "(N, C, ...)");
    CheckFields();
    const Shape& in = ctx.Input(0);
    stored_ = param.has_use_global_stats() ? param.use_global_stats() : ctx.phase() == caffe::TEST;
    stored_ = stored_ || ctx.is_frozen();
    channels_ = in[1];
    pixels_ = channels_ > 0 ? in.Count() / channels_ : 0;
    // Synchronised statistics are equal on all replicas, and averaging them could round.
    const ParamOptions fixed = {.layout = {},
                                .default_lr_mult = 0,
                                .default_decay_mult = 0,
                                .is_running_stat = !stored_ && !param.synchronized()};
    ctx.Param("mean", {in[1]}, {}, fixed);
    ctx.Param("variance", {in[1]}, {}, fixed);
    ctx.Param("factor", {1}, {}, fixed);
    if (learned_) {
      caffe::FillerParameter scale = param.scale_filler();
      if (!param.has_scale_filler()) scale.set_value(1);
      ctx.Param("scale", {in[1]}, scale);
      ctx.Param("bias", {in[1]}, param.bias_filler());
    }
    ctx.UsesAllReduce(
        IsSynchronized() ? "synchronized: true computes mean and variance over all ranks" : "");
    replica_moments_.Plan(channels_);
    ctx.Output(0, in, ctx.InputType(0));
    if (KeepsInput()) {
      ctx.SaveInput(0);
      if (fused_.sum && fused_.relu) ctx.SaveOutput(0);
      ctx.AllowGradInPlace(fused_.sum ? 1 : 0);
    } else {
      if (!stored_) ctx.SaveOutput(0);
      ctx.AllowInPlace();
    }
    desc_ = {.shape = in,
             .eps = eps_,
             .stored = stored_,
             .other = fused_.sum,
             .relu = fused_.relu,
             .backward_from_output = !KeepsInput(),
             .dtype = ctx.InputType(0)};
  }

  void UseAllReduce(const AllReduceFn& replicas) override { replica_moments_.Use(replicas); }
  bool AdaptBlobs(const caffe::LayerParameter& stored, const std::string& file,
                  caffe::LayerParameter* adapted) const override {
    return AdaptBatchNormBlobs(spec_, stored, file, adapted);
  }

  void Prepare(PrepareContext& ctx) override {
    norm_ = ctx.device().NewBatchNorm(desc_);
    if (IsSynchronized()) AverageBackwardMeans(ctx.device());
    ctx.Workspace(norm_->WorkspaceBytes());
    ctx.Scratch(norm_->ScratchBytes());
  }

  // Accepts, in this order and each at most once, a Scale with one factor per channel, an Eltwise
  // sum of two inputs, and a ReLU of slope 0, if the device has a kernel for them.
  bool Fuse(std::span<const LayerSpec* const> next, const Device& device) override {
    Fused fused;
    for (size_t k = 0; k < next.size(); ++k) {
      if (!AddFused(*next[k], static_cast<int>(k), fused)) return false;
    }
    BatchNormDesc desc = desc_;
    desc.other = fused.sum;
    desc.relu = fused.relu;
    desc.backward_from_output = false;
    if (!next.empty() && !device.Supports(desc)) return false;
    fused_ = fused;
    return true;
  }

  void Forward(const RunContext& run) override {
    const BatchNormStats at = norm_->StatsIn(run.Workspace());
    if (stored_) {
      ForEach(run.device(), channels_,
              StoredMoments{run.Param(0), run.Param(1), run.Param(2), at.mean, at.inverse});
    } else {
      norm_->Moments(run.Input(0), at, run.Scratch());
      if (IsJoined()) replica_moments_.Join(run.device(), at.mean, at.inverse);
      if (run.phase() == caffe::TRAIN && !run.is_reevaluation())
        UpdateStored(run, at.mean, at.inverse);
    }
    norm_->Forward(Tensors(run), at);
  }

  bool Recomputes() const override { return true; }
  // Uses the moments of the last Forward again, so the stored averages move once per pass.
  void Recompute(const RunContext& run) override {
    norm_->Recompute(Tensors(run), norm_->StatsIn(run.Workspace()));
  }

  void Backward(const RunContext& run) override {
    const RunContext& owner = AffineOwner(run);
    BatchNormGradients in = {.x = run.Input(0),
                             .y = run.Output(0),
                             .dy = run.GradOutput(0),
                             .scale = owner.ParamOrNull(FirstAffine()),
                             .shift = owner.ParamOrNull(FirstAffine() + 1),
                             .dx = run.GradInput(0),
                             .dother = {},
                             .dscale = owner.GradParamOrNull(FirstAffine()),
                             .dshift = owner.GradParamOrNull(FirstAffine() + 1)};
    if (fused_.sum) in.dother = run.GradInput(1);
    norm_->Backward(in, norm_->StatsIn(run.Workspace()), run.Scratch());
  }

 private:
  // Throws kConfig for a learning rate of the statistics, a negative eps, and a
  // moving_average_fraction outside [0, 1].
  void CheckFields() const {
    const caffe::BatchNormParameter& param = spec_.proto().batch_norm_param();
    for (int i = 0; i < std::min(3, spec_.proto().param_size()); ++i) {
      if (spec_.proto().param(i).lr_mult() == 0) continue;
      spec_.Fail("param",
                 Join("lr_mult is ", spec_.proto().param(i).lr_mult(),
                      ", but the statistics of a BatchNorm are not trained: set lr_mult: 0, or "
                      "remove `param`"),
                 i);
    }
    if (!(param.eps() >= 0)) {
      spec_.FailIn("batch_norm_param", "eps",
                   Join("eps is ", param.eps(), "; it must not be negative"));
    }
    const float keep = param.moving_average_fraction();
    if (!(keep >= 0 && keep <= 1)) {
      spec_.FailIn("batch_norm_param", "moving_average_fraction",
                   Join("moving_average_fraction is ", keep, "; it must be within [0, 1]"));
    }
  }

  // The layers that are fused into this one, in this order, each at most once: a Scale (the number
  // of its context), a sum with input 1, a ReLU.
  struct Fused {
    int scale = -1;
    bool sum = false, relu = false;
  };

  // Adds layer number k to `fused`. Returns false if it may not follow the layers there; `fused` is
  // then not valid.
  bool AddFused(const LayerSpec& next, int k, Fused& fused) const {
    if (fused.relu) return false;
    if (next.type() == "Scale" && k == 0 && !learned_) {
      const caffe::ScaleParameter& param = next.proto().scale_param();
      fused.scale = k;
      return next.proto().bottom_size() == 1 && param.axis() == 1 && param.num_axes() == 1;
    }
    if (next.type() == "Eltwise" && !fused.sum) return fused.sum = IsPlainSum(next);
    return fused.relu = IsPlainRelu(next);
  }

  // Returns true if the moments are computed over the batches of all replicas.
  bool IsSynchronized() const {
    return spec_.proto().batch_norm_param().synchronized() && !stored_;
  }
  // Returns true if they are and there is more than one replica.
  bool IsJoined() const { return IsSynchronized() && replica_moments_.count() > 1; }

  // Makes Backward average the gradients' channel means over the replicas, as the moments were.
  void AverageBackwardMeans(const Device& device) {
    norm_->SetStatsAllReduce([this, &device](float* means, int64_t count) {
      if (IsJoined()) replica_moments_.Mean(device, means, count);
    });
  }

  // Returns true if y is more than the normalised input, so that Backward needs the input.
  bool KeepsInput() const { return learned_ || fused_.scale >= 0 || fused_.sum || fused_.relu; }

  // Returns the context with the learned scale and shift and their gradients: this layer's, or a
  // fused Scale layer's.
  const RunContext& AffineOwner(const RunContext& run) const {
    return fused_.scale >= 0 ? run.Epilogue(fused_.scale) : run;
  }
  // Returns the number of the scale among the parameters of AffineOwner; the shift follows it.
  int FirstAffine() const { return fused_.scale >= 0 ? 0 : 3; }

  // Returns the tensors of a forward pass, including the ones of fused layers.
  BatchNormTensors Tensors(const RunContext& run) const {
    const RunContext& owner = AffineOwner(run);
    return {.x = run.Input(0),
            .other = fused_.sum ? run.Input(1) : ConstTensor(),
            .scale = owner.ParamOrNull(FirstAffine()),
            .shift = owner.ParamOrNull(FirstAffine() + 1),
            .y = run.Output(0)};
  }

  // Adds the batch's moments to the running averages, with the unbiased variance n / (n - 1), as
  // Caffe and PyTorch do.
  void UpdateStored(const RunContext& run, const float* mean, const float* variance) const {
    const float keep = spec_.proto().batch_norm_param().moving_average_fraction();
    const int64_t count = IsJoined() ? pixels_ * replica_moments_.count() : pixels_;
    const auto pixels = static_cast<float>(count);
    const float unbias = count > 1 ? pixels / (pixels - 1) : 1.0f;
    if (learned_) {
      ForEach(
          run.device(), channels_,
          UpdateAverages{run.Param(0), run.Param(1), run.Param(2), mean, variance, keep, unbias});
      return ForEach(run.device(), 1, SetToOne{run.Param(2)});
    }
    ForEach(run.device(), channels_,
            UpdateSums{run.Param(0), run.Param(1), run.Param(2), mean, variance, keep, unbias});
  }

  LayerSpec spec_;
  BatchNormDesc desc_;
  std::unique_ptr<BatchNormPrimitive> norm_;
  AllReducedMoments replica_moments_;
  int64_t channels_ = 0, pixels_ = 0;  // pixels: the elements of a channel
  float eps_ = 0;
  bool stored_ = false, learned_ = false;
  Fused fused_;
};

const RegisterLayer<BatchNorm> kBatchNormVerb(
    "BatchNorm",
    {.text = "y = (x - mean) / sqrt(variance + eps), per channel. May work in place.\n"
             "bottom (N, C, ...). In training, mean and variance are those of the batch. The "
             "layer stores running averages: sum of means (C), sum of variances (C), sum of "
             "weights (1). moving_average_fraction is the weight of the past per batch. In "
             "testing, and with use_global_stats or freeze, the layer uses the stored averages and "
             "does not change them. It has no trained weights: a Scale layer with bias_term "
             "usually follows.\n"
             "With scale_bias, or one of the two fillers, the output is y * scale + bias, as in "
             "NVIDIA Caffe. scale and bias are trained, one per channel, initially 1 and 0. This "
             "form stores (mean (C), variance (C), 1, scale (C), bias (C)); eps is at least 1e-5; "
             "it also loads files without scale and bias.\n"
             "synchronized: mean and variance are computed over the batches of all ranks "
             "together, as in PyTorch's SyncBatchNorm.\n"
             "filler (Intel Caffe) initialises the scale of the next Scale layer; if there is "
             "none, it means scale_filler.",
     .param = "batch_norm_param",
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
