#pragma once
// Base class of the three directions of a convolution with cuDNN.

#include <string>

#include "conv_kernels.h"
#include "cuda/bindings/library_types.h"
#include "cuda/conv/algorithm.h"
#include "trainer/backend/memory/library_call.h"
#include "trainer/backend/memory/scratch_layout.h"

namespace trainer::cuda {

// A problem with the algorithm chosen for one direction and what it needs of scratch.
class CudnnStep {
 public:
  CudnnStep(const CudaDevice& device, const ConvDesc& desc) : problem_(device, desc) {}

  // Returns the layout of the weights that the library multiplies by; nothing if it reads our array
  // directly. See ConvPrimitive::packed_layout.
  std::optional<PackedLayout> LayoutOfFilter() const {
    const FilterOrder& order = problem_.order();
    if (order.IsOurs()) return std::nullopt;
    if (!order.channels_innermost) return PackedLayout{order.dtype, 1, 1, order.Count()};
    return PackedLayout{order.dtype, order.filters, order.channels, order.taps};
  }
  // See ConvPrimitive::UsePackedWeight.
  void UseFilter(const void* copy, const bool* holds) {
    copy_ = copy;
    copy_holds_ = holds;
  }

 protected:
  const ConvProblem& problem() const { return problem_; }
  const CudaDevice& device() const { return problem_.device(); }
  const ConvDesc& desc() const { return problem_.desc(); }
  const ConvAlgorithm& algorithm() const { return algorithm_; }
  ScratchLayout& scratch() { return scratch_; }
  size_t Bytes() const { return scratch_.Bytes(); }
  // Returns the name of the chosen algorithm, for reports.
  std::string Algorithm() const { return Join("cuDNN algorithm ", algorithm_.algo); }

  // Chooses the algorithm and plans the scratch. Returns "" or the reason why there is no
  // algorithm.
  std::string ChooseFor(const ConvDirection& direction,
                        const std::function<bool(ConvAlgorithm&)>& finish = nullptr) {
    std::string reason;
    const auto chosen = ChooseAlgorithm(problem_, direction, &reason, finish);
    if (!chosen) return reason;
    algorithm_ = *chosen;
    filter_ = scratch_.AddBytes(problem_.FilterBytes());
    workspace_ = scratch_.AddBytes(WorkspaceRoom(algorithm_.Workspace()));
    return "";
  }

  // Checks the alignment of the tensors and makes this GPU the current one. Called before each
  // library call.
  void Begin(const void* input, const void* output) const {
    ExpectAligned(input);
    ExpectAligned(output);
    device().Use();
  }
  // Returns whether the library can read and write our array of weights directly.
  bool FitsLibrary(const float* weights) const {
    return problem_.order().IsOurs() && IsAligned(weights);
  }
  // Returns the room in the scratch for weights in the library's order.
  std::byte* FilterIn(std::span<std::byte> memory) const { return filter_.At(memory); }
  // Returns the library's workspace in the scratch, aligned as it needs it.
  std::byte* WorkspaceIn(std::span<std::byte> memory) const {
    return cuda::WorkspaceIn(workspace_.At(memory));
  }
  // Returns the weights in the library's order and type, and packs them first if needed.
  const void* Filter(const float* weight, std::span<std::byte> memory) const {
    if (FitsLibrary(weight)) return weight;
    if (copy_ != nullptr && *copy_holds_) return copy_;
    PutFilter(device(), problem_.order(), weight, FilterIn(memory));
    return FilterIn(memory);
  }

 private:
  ConvProblem problem_;
  ConvAlgorithm algorithm_;
  ScratchLayout scratch_;
  ScratchRegion<std::byte> filter_, workspace_;
  const void* copy_ = nullptr;
  const bool* copy_holds_ = nullptr;
};

// Makes the candidate of one direction, or says why cuDNN declines. Step has `std::string
// Choose()`, which returns the reason if it declines.
template <class Made, class Step>
KernelOrReason<Made> OfferCudnn(const Device& any, const ConvDesc& desc) {
  const auto* device = dynamic_cast<const CudaDevice*>(&any);
  if (device == nullptr) return Unsupported{"the device is not this backend's"};
  if (std::string why = ConvProblem::WhyNot(*device, desc); !why.empty()) return Unsupported{why};
  auto step = std::make_unique<Step>(*device, desc);
  if (std::string why = step->Choose(); !why.empty()) return Unsupported{why};
  return std::unique_ptr<Made>(std::move(step));
}

}  // namespace trainer::cuda
