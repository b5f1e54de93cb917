// The gradient of a convolution's weights, by cuDNN, added to the existing gradient. The gradient
// of the bias is computed by our own sum.

#include "cuda/conv/cudnn_kernel.h"
#include "cuda/ops.h"

namespace trainer::cuda {
namespace {

// Sets `results` to the library's own ranking of its algorithms, without running them.
int BackwardWeightHeuristics(const ConvProblem& p, int most, int* found, cudnn::AlgoPerf* results) {
  return GetCudnn()->GetConvolutionBackwardFilterAlgorithm_v7(p.handle(), p.x(), p.y(), p.conv(),
                                                              p.filter(), most, found, results);
}
// Runs all algorithms on the trial's memory and sets `results` to their times, the fastest first.
int MeasureBackwardWeight(const ConvProblem& p, const TrialMemory& trial, int most, int* found,
                          cudnn::AlgoPerf* results) {
  return GetCudnn()->FindConvolutionBackwardFilterAlgorithmEx(
      p.handle(), p.x(), trial.x, p.y(), trial.y, p.conv(), p.filter(), trial.filter, most, found,
      results, trial.workspace, trial.workspace_bytes);
}
// Sets *bytes to the workspace that an algorithm needs.
int BackwardWeightWorkspace(const ConvProblem& p, int algo, size_t* bytes) {
  return GetCudnn()->GetConvolutionBackwardFilterWorkspaceSize(p.handle(), p.x(), p.y(), p.conv(),
                                                               p.filter(), algo, bytes);
}
constexpr ConvDirection kBackwardWeight = {"weight gradient", BackwardWeightHeuristics,
                                           MeasureBackwardWeight, BackwardWeightWorkspace};

// One call of cuDNN for the weights, then a sum of our own for the bias.
class CudnnBackwardWeight final : public ConvBackwardWeight, public CudnnStep {
 public:
  using CudnnStep::CudnnStep;

  std::string Choose() { return ChooseFor(kBackwardWeight); }
  std::string Name() const override { return Algorithm(); }
  size_t ScratchBytes() const override { return Bytes(); }
  // If the library cannot add to our array, because of its order, type or alignment, it computes
  // into scratch, and a kernel of our own adds the result.
  void Run(const void* x, const void* dy, float* dweight, float* dbias,
           std::span<std::byte> memory) override {
    Begin(x, dy);
    const InLibraryCall mark;
    if (FitsLibrary(dweight)) {
      Compute(x, dy, 1, dweight, memory);
    } else {
      Compute(x, dy, 0, FilterIn(memory), memory);
      AddFilterGradient(device(), problem().order(), FilterIn(memory), dweight);
    }
    if (dbias == nullptr || !desc().bias) return;
    const ConstTensor gradient(dy, desc().OutShape(), desc().dtype);
    AddChannelSums(device(), ChannelSumsDesc::Of(gradient.shape, 1), gradient, nullptr, dbias);
  }

 private:
  // Computes result = the gradient + beta * result.
  void Compute(const void* x, const void* dy, float beta, void* result,
               std::span<std::byte> memory) const {
    const ConvProblem& p = problem();
    const float one = 1;
    CheckCudnn(GetCudnn()->ConvolutionBackwardFilter(
                   p.handle(), &one, p.x(), x, p.y(), dy, p.conv(), algorithm().algo,
                   WorkspaceIn(memory), algorithm().workspace, &beta, p.filter(), result),
               "computing the gradient of weights (cudnnConvolutionBackwardFilter)");
  }
};

const RegisterConvKernel<ConvBackwardWeight> kCudnnBackwardWeight(
    {DeviceKind::kCuda, priority::kLibrary, "cuDNN",
     OfferCudnn<ConvBackwardWeight, CudnnBackwardWeight>});

}  // namespace
}  // namespace trainer::cuda
