// The forward convolution with cuDNN. Bias and ReLU are part of its call if cuDNN supports that and
// the fused call keeps NaN, which a trial shows, or NaN may be dropped. Otherwise a pass of our own
// over the output follows.

#include <optional>

#include "cuda/conv/cudnn_kernel.h"
#include "cuda/kernels/bias_relu.h"

namespace trainer::cuda {
namespace {

constexpr float kOne = 1, kZero = 0;

// Sets `results` to the library's own ranking of its algorithms, without running them.
int ForwardHeuristics(const ConvProblem& p, int most, int* found, cudnn::AlgoPerf* results) {
  return GetCudnn()->GetConvolutionForwardAlgorithm_v7(p.handle(), p.x(), p.filter(), p.conv(),
                                                       p.y(), most, found, results);
}
// Runs all algorithms on the trial's memory and sets `results` to their times, the fastest first.
int MeasureForward(const ConvProblem& p, const TrialMemory& trial, int most, int* found,
                   cudnn::AlgoPerf* results) {
  return GetCudnn()->FindConvolutionForwardAlgorithmEx(
      p.handle(), p.x(), trial.x, p.filter(), trial.filter, p.conv(), p.y(), trial.y, most, found,
      results, trial.workspace, trial.workspace_bytes);
}
// Sets *bytes to the workspace that an algorithm needs.
int ForwardWorkspace(const ConvProblem& p, int algo, size_t* bytes) {
  return GetCudnn()->GetConvolutionForwardWorkspaceSize(p.handle(), p.x(), p.filter(), p.conv(),
                                                        p.y(), algo, bytes);
}
constexpr ConvDirection kForwardDirection = {"forward", ForwardHeuristics, MeasureForward,
                                             ForwardWorkspace};

// The operation after the products, as a cuDNN activation. `nan` is a cudnnNanPropagation_t.
class Activation {
 public:
  Activation(bool relu, int nan)
      : activation_(&Cudnn::CreateActivationDescriptor, &Cudnn::DestroyActivationDescriptor) {
    CheckCudnn(GetCudnn()->SetActivationDescriptor(
                   activation_, relu ? cudnn::kActivationRelu : cudnn::kActivationIdentity, nan, 0),
               "describing an activation (cudnnSetActivationDescriptor)");
  }

  // Convolves, adds the bias and applies the activation in one call. Returns cuDNN's status.
  int Run(const ConvProblem& p, const ConvAlgorithm& algorithm, const void* x, const void* filter,
          const void* bias, void* y, std::byte* workspace) const {
    return GetCudnn()->ConvolutionBiasActivationForward(
        p.handle(), &kOne, p.x(), x, p.filter(), filter, p.conv(), algorithm.algo, workspace,
        algorithm.Workspace(), &kZero, p.y(), y, p.bias(), bias, activation_, p.y(), y);
  }

 private:
  CudnnOwner<cudnn::ActivationDesc> activation_;
};

// Returns whether cuDNN offers a fused call for this at all.
bool MayFuse(const ConvDesc& desc, const ConvAlgorithm& algorithm) {
  // Only this algorithm can add a bias without an activation.
  return desc.bias && (desc.relu || algorithm.algo == cudnn::kForwardImplicitPrecompGemm);
}

// Makes the fused call on NaN in the trial's memory and returns whether NaN comes out, or nothing
// if the call fails. All bytes 0xff are NaN in every storage type.
std::optional<bool> KeepsNan(const ConvProblem& p, const ConvAlgorithm& algorithm, int nan,
                             const TrialMemory& trial) {
  const CudaDevice& device = p.device();
  device.Memset(trial.y, 0, p.OutBytes());
  const Activation activation(p.desc().relu, nan);
  if (activation.Run(p, algorithm, trial.x, trial.filter, trial.bias, trial.y, trial.workspace) !=
      cudnn::kSuccess) {
    GetRuntime()->GetLastError();
    return std::nullopt;
  }
  return DispatchDtype(p.desc().dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T first;
    device.CopyToHost(&first, trial.y, sizeof(first));
    const float value = Load(first);
    return value != value;
  });
}

// Returns the best fused call that works in the algorithm's workspace, one that keeps NaN if there
// is one, or kNone. Returns nothing if the memory for the trial cannot be allocated. The library's
// documentation allows CUDNN_NOT_PROPAGATE_NAN only.
std::optional<ConvFusion> FusionInWorkspace(const ConvProblem& p, const ConvAlgorithm& algorithm) {
  const TrialMemory trial(p, TrialMemory::Fill::kNan, algorithm.Workspace());
  if (!trial || trial.workspace_bytes < algorithm.Workspace()) return std::nullopt;
  if (KeepsNan(p, algorithm, cudnn::kPropagateNan, trial).value_or(false)) {
    return ConvFusion::kPropagatesNan;
  }
  const std::optional<bool> keeps = KeepsNan(p, algorithm, cudnn::kNotPropagateNan, trial);
  if (!keeps) return ConvFusion::kNone;
  return *keeps ? ConvFusion::kKeepsNan : ConvFusion::kDropsNan;
}

// Sets the fusion of an algorithm by trials. The kernel of the fused call may need more workspace
// than the library reports for the algorithm, at most as much as a copy of each operand; so a
// second trial has more. Returns false if the memory for a trial cannot be allocated.
bool TryFusing(const ConvProblem& p, ConvAlgorithm* algorithm) {
  std::optional<ConvFusion> fusion = FusionInWorkspace(p, *algorithm);
  if (fusion == ConvFusion::kNone) {
    ConvAlgorithm larger = *algorithm;
    larger.fused_workspace = std::min(
        kMaxConvWorkspace, algorithm->workspace + p.InBytes() + p.FilterBytes() + p.OutBytes());
    fusion = FusionInWorkspace(p, larger);
    if (fusion.value_or(ConvFusion::kNone) != ConvFusion::kNone) *algorithm = larger;
  }
  algorithm->fusion = fusion.value_or(ConvFusion::kNone);
  return fusion.has_value();
}

// One call of cuDNN, followed by a pass over y for bias and ReLU unless the call includes them.
class CudnnForward final : public ConvForward, public CudnnStep {
 public:
  using CudnnStep::CudnnStep;

  // Chooses the algorithm and tests whether bias and ReLU can be fused into it.
  std::string Choose() {
    std::string reason = ChooseFor(kForwardDirection, [&](ConvAlgorithm& a) {
      return !MayFuse(desc(), a) || TryFusing(problem(), &a);
    });
    const bool propagates = algorithm().fusion == ConvFusion::kPropagatesNan;
    activation_.emplace(desc().relu, propagates ? cudnn::kPropagateNan : cudnn::kNotPropagateNan);
    if (CastsBias()) {
      bias_ = scratch().AddBytes(static_cast<size_t>(desc().out_channels) * problem().Size());
    }
    return reason;
  }

  std::string Name() const override {
    const std::string after = desc().bias && desc().relu ? "bias and ReLU"
                              : desc().bias              ? "bias"
                              : desc().relu              ? "ReLU"
                                                         : "";
    if (after.empty()) return Algorithm();
    return Fuses() ? Join(Algorithm(), " with ", after) : Join(Algorithm(), ", ", after, " apart");
  }
  std::optional<PackedLayout> packed_layout() const override { return LayoutOfFilter(); }
  void UsePackedWeight(const void* copy, const bool* holds) override { UseFilter(copy, holds); }
  void AllowDroppedNan() override { may_drop_nan_ = desc().dtype == DType::kF16; }
  size_t ScratchBytes() const override { return Bytes(); }
  void Run(const void* x, const float* weight, const float* bias, void* y,
           std::span<std::byte> memory) override {
    Begin(x, y);
    const InLibraryCall mark;
    const ConvProblem& p = problem();
    const void* filter = Filter(weight, memory);
    std::byte* const workspace = WorkspaceIn(memory);
    if (Fuses()) {
      CheckCudnn(activation_->Run(p, algorithm(), x, filter, Bias(bias, memory), y, workspace),
                 "convolving (cudnnConvolutionBiasActivationForward)");
      return;
    }
    CheckCudnn(GetCudnn()->ConvolutionForward(p.handle(), &kOne, p.x(), x, p.filter(), filter,
                                              p.conv(), algorithm().algo, workspace,
                                              algorithm().workspace, &kZero, p.y(), y),
               "convolving (cudnnConvolutionForward)");
    if (desc().bias || desc().relu) {
      AddBiasRelu(device(), AxisRows(desc().OutShape(), 1), desc().bias ? bias : nullptr,
                  desc().relu, y, desc().dtype);
    }
  }

 private:
  // Returns whether Run makes the fused call: one that drops NaN needs AllowDroppedNan.
  bool Fuses() const {
    return algorithm().fusion == ConvFusion::kKeepsNan ||
           algorithm().fusion == ConvFusion::kPropagatesNan ||
           (algorithm().fusion == ConvFusion::kDropsNan && may_drop_nan_);
  }
  // Returns whether the fused call needs the bias in a 16-bit type.
  bool CastsBias() const {
    return algorithm().fusion != ConvFusion::kNone && desc().dtype != DType::kF32;
  }

  // Converts the bias to the tensors' type, which the library needs.
  const void* Bias(const float* bias, std::span<std::byte> memory) const {
    if (!CastsBias()) return bias;
    const Shape shape = {desc().out_channels};
    device().Convert({bias, shape}, {bias_.At(memory), shape, desc().dtype});
    return bias_.At(memory);
  }

  std::optional<Activation> activation_;
  ScratchRegion<std::byte> bias_;
  bool may_drop_nan_ = false;
};

const RegisterConvKernel<ConvForward> kCudnnForward({DeviceKind::kCuda, priority::kLibrary, "cuDNN",
                                                     OfferCudnn<ConvForward, CudnnForward>});

}  // namespace
}  // namespace trainer::cuda
