// The gradient of a convolution's input, by cuDNN.

#include "cuda/conv/cudnn_kernel.h"

namespace trainer::cuda {
namespace {

// Sets `results` to the library's own ranking of its algorithms, without running them.
int BackwardDataHeuristics(const ConvProblem& p, int most, int* found, cudnn::AlgoPerf* results) {
  return GetCudnn()->GetConvolutionBackwardDataAlgorithm_v7(p.handle(), p.filter(), p.y(), p.conv(),
                                                            p.x(), most, found, results);
}
// Runs all algorithms on the trial's memory and sets `results` to their times, the fastest first.
int MeasureBackwardData(const ConvProblem& p, const TrialMemory& trial, int most, int* found,
                        cudnn::AlgoPerf* results) {
  return GetCudnn()->FindConvolutionBackwardDataAlgorithmEx(
      p.handle(), p.filter(), trial.filter, p.y(), trial.y, p.conv(), p.x(), trial.x, most, found,
      results, trial.workspace, trial.workspace_bytes);
}
// Sets *bytes to the workspace that an algorithm needs.
int BackwardDataWorkspace(const ConvProblem& p, int algo, size_t* bytes) {
  return GetCudnn()->GetConvolutionBackwardDataWorkspaceSize(p.handle(), p.filter(), p.y(),
                                                             p.conv(), p.x(), algo, bytes);
}
constexpr ConvDirection kBackwardData = {"data gradient", BackwardDataHeuristics,
                                         MeasureBackwardData, BackwardDataWorkspace};

// One call of cuDNN, on weights that are packed first if their order or type is not the library's.
class CudnnBackwardData final : public ConvBackwardData, public CudnnStep {
 public:
  using CudnnStep::CudnnStep;

  std::string Choose() { return ChooseFor(kBackwardData); }
  std::optional<PackedLayout> packed_layout() const override { return LayoutOfFilter(); }
  void UsePackedWeight(const void* copy, const bool* holds) override { UseFilter(copy, holds); }
  std::string Name() const override { return Algorithm(); }
  size_t ScratchBytes() const override { return Bytes(); }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> memory) override {
    Begin(dy, dx);
    const InLibraryCall mark;
    const ConvProblem& p = problem();
    const void* filter = Filter(weight, memory);
    const float one = 1, zero = 0;
    CheckCudnn(GetCudnn()->ConvolutionBackwardData(p.handle(), &one, p.filter(), filter, p.y(), dy,
                                                   p.conv(), algorithm().algo, WorkspaceIn(memory),
                                                   algorithm().workspace, &zero, p.x(), dx),
               "computing the gradient of an input (cudnnConvolutionBackwardData)");
  }
};

const RegisterConvKernel<ConvBackwardData> kCudnnBackwardData(
    {DeviceKind::kCuda, priority::kLibrary, "cuDNN",
     OfferCudnn<ConvBackwardData, CudnnBackwardData>});

}  // namespace
}  // namespace trainer::cuda
