// Matrix products with cuBLASLt, which is column-major. There, a row-major C is its transpose, and
// C' = op(B)' op(A)', so the operands are swapped and nothing is copied.

#include <algorithm>
#include <optional>

#include "cuda/bindings/errors.h"
#include "cuda/bindings/library_types.h"
#include "cuda/cuda_device.h"
#include "cuda/kernels/bias_relu.h"
#include "kernel_registry.h"
#include "trainer/backend/memory/library_call.h"

namespace trainer::cuda {
namespace {

// Upper limit of an algorithm's workspace: the size that the library recommends for its fastest
// kernels.
constexpr uint64_t kMaxWorkspace = uint64_t{32} << 20;

// Owns an object of the library.
template <class T>
class Owner {
 public:
  using Destroy = int (*CublasLt::*)(T*);
  explicit Owner(Destroy destroy) : destroy_(destroy) {}
  ~Owner() {
    if (object_ != nullptr) (GetCublasLt()->*destroy_)(object_);
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  T* get() const { return object_; }
  T** put() { return &object_; }

 private:
  Destroy destroy_;
  T* object_ = nullptr;
};

// The library's description of a matrix.
struct CublasMatrix {
  Owner<cublas_lt::MatrixLayout> layout{&CublasLt::MatrixLayoutDestroy};

  // Describes a row-major matrix (rows, columns), which the library sees as its transpose.
  CublasMatrix(DType type, int64_t rows, int64_t columns) {
    CheckCublasLt(GetCublasLt()->MatrixLayoutCreate(layout.put(), CudaTypeOf(type),
                                                    static_cast<uint64_t>(columns),
                                                    static_cast<uint64_t>(rows), columns),
                  "describing a matrix");
  }
};

// Alignment of the operands' addresses, in bytes.
struct Alignment {
  uint32_t in, out;
};

// Returns whether the bias is written to C first and the product is added to it. For 16-bit results
// the library accepts only a 16-bit bias; this way the sums are rounded only once.
bool StartsFromBias(const GemmDesc& desc) { return desc.bias && desc.out_dtype != DType::kF32; }

// A product for operands of a given alignment: its description and the chosen algorithm.
class CublasProduct {
 public:
  // `bias`: the library adds the bias. The address of the bias must then be a multiple of
  // kVectorBytes: the library has no preference for its alignment, and a kernel chosen for an
  // aligned one may fail on another.
  CublasProduct(const CudaDevice& device, const GemmDesc& desc, bool bias,
                const Alignment& alignment)
      : first_(desc.dtype, desc.trans_b ? desc.n : desc.k, desc.trans_b ? desc.k : desc.n),
        second_(desc.dtype, desc.trans_a ? desc.k : desc.m, desc.trans_a ? desc.m : desc.k),
        result_(desc.out_dtype, desc.m, desc.n),
        beta_(desc.accumulate || StartsFromBias(desc) ? 1.0f : 0.0f) {
    const bool tf32 = desc.dtype == DType::kF32 && device.options().tf32;
    CheckCublasLt(GetCublasLt()->MatmulDescCreate(
                      desc_.put(), tf32 ? cublas_lt::kCompute32FFastTf32 : cublas_lt::kCompute32F,
                      cublas_lt::kReal32F),
                  "describing a matrix product");
    Set<int32_t>(cublas_lt::kDescTransA, desc.trans_b ? cublas_lt::kOpT : cublas_lt::kOpN);
    Set<int32_t>(cublas_lt::kDescTransB, desc.trans_a ? cublas_lt::kOpT : cublas_lt::kOpN);
    if (bias) {
      Set<int32_t>(cublas_lt::kDescEpilogue, cublas_lt::kEpilogueBias);
      // The choice of the algorithm may depend on the pointer's alignment; Run sets the real
      // pointer.
      Set<const void*>(cublas_lt::kDescBiasPointer, reinterpret_cast<const void*>(kVectorBytes));
    }
    Choose(device, alignment);
  }

  explicit operator bool() const { return found_; }
  size_t workspace() const { return algorithm_.workspace_size; }

  // Queues the product. `bias` is null unless the library adds it.
  void Run(const CudaDevice& device, const void* a, const void* b, const float* bias, void* c,
           std::byte* workspace) {
    const float alpha = 1;
    if (bias != nullptr) Set<const void*>(cublas_lt::kDescBiasPointer, bias);
    CheckCublasLt(
        GetCublasLt()->Matmul(device.CublasLtHandle(), desc_.get(), &alpha, b, first_.layout.get(),
                              a, second_.layout.get(), &beta_, c, result_.layout.get(), c,
                              result_.layout.get(), &algorithm_.algo, workspace,
                              algorithm_.workspace_size, device.stream()),
        "multiplying matrices (cublasLtMatmul)");
  }

 private:
  // Sets an attribute of the description.
  template <class T>
  void Set(int attribute, T value) {
    CheckCublasLt(
        GetCublasLt()->MatmulDescSetAttribute(desc_.get(), attribute, &value, sizeof(value)),
        "describing a matrix product");
  }

  // Takes the library's first choice for this alignment; `found_` stays false if it has none.
  void Choose(const CudaDevice& device, const Alignment& alignment) {
    const CublasLt& lt = *GetCublasLt();
    Owner<cublas_lt::MatmulPreference> wish{&CublasLt::MatmulPreferenceDestroy};
    CheckCublasLt(lt.MatmulPreferenceCreate(wish.put()), "choosing a matrix product");
    const auto set = [&](int attribute, auto value) {
      CheckCublasLt(lt.MatmulPreferenceSetAttribute(wish.get(), attribute, &value, sizeof(value)),
                    "choosing a matrix product");
    };
    set(cublas_lt::kPrefMaxWorkspaceBytes, kMaxWorkspace);
    set(cublas_lt::kPrefMinAlignmentABytes, alignment.in);
    set(cublas_lt::kPrefMinAlignmentBBytes, alignment.in);
    set(cublas_lt::kPrefMinAlignmentCBytes, alignment.out);
    set(cublas_lt::kPrefMinAlignmentDBytes, alignment.out);
    if (device.options().deterministic) {
      set(cublas_lt::kPrefReductionSchemeMask,
          cublas_lt::kReductionComputeType | cublas_lt::kReductionOutputType);
    }
    int found = 0;
    const int status = lt.MatmulAlgoGetHeuristic(
        device.CublasLtHandle(), desc_.get(), first_.layout.get(), second_.layout.get(),
        result_.layout.get(), result_.layout.get(), wish.get(), 1, &algorithm_, &found);
    found_ = status == cublas_lt::kSuccess && found > 0 &&
             algorithm_.state == cublas_lt::kSuccess && algorithm_.workspace_size <= kMaxWorkspace;
  }

  Owner<cublas_lt::MatmulDesc> desc_{&CublasLt::MatmulDescDestroy};
  CublasMatrix first_, second_, result_;
  float beta_;
  cublas_lt::HeuristicResult algorithm_ = {};
  bool found_ = false;
};

// A product whose bias the library adds if it can and the operands are aligned; otherwise a kernel
// of our own does, before or after.
class CublasGemm final : public GemmPrimitive {
 public:
  CublasGemm(const CudaDevice& device, const GemmDesc& desc) : device_(device), desc_(desc) {
    const Alignment aligned = {kVectorBytes, kVectorBytes};
    if (desc.bias && desc.out_dtype == DType::kF32) fused_.emplace(device, desc, true, aligned);
    fuses_ = fused_ && *fused_;
    vectors_.emplace(device, desc, false, aligned);
    elements_.emplace(device, desc, false,
                      Alignment{static_cast<uint32_t>(SizeOf(desc.dtype)),
                                static_cast<uint32_t>(SizeOf(desc.out_dtype))});
  }
  // Returns whether the library has algorithms for aligned and for other operands.
  bool Works() const { return *vectors_ && *elements_; }

  std::string kernel() const override {
    if (StartsFromBias(desc_)) return "cublasLt, after the bias";
    return desc_.bias && !fuses_ ? "cublasLt, then the bias" : "cublasLt";
  }
  size_t ScratchBytes() const override {
    return WorkspaceRoom(std::max(
        {vectors_->workspace(), elements_->workspace(), fuses_ ? fused_->workspace() : size_t{0}}));
  }
  void Run(const void* a, const void* b, const float* bias, void* c,
           std::span<std::byte> scratch) override {
    const InLibraryCall mark;
    device_.Use();
    const bool aligned = IsAligned(a) && IsAligned(b) && IsAligned(c);
    const bool fuses = fuses_ && aligned && IsAligned(bias);
    if (StartsFromBias(desc_)) SetBias(device_, {desc_.m, desc_.n, 1}, bias, c, desc_.out_dtype);
    (fuses     ? *fused_
     : aligned ? *vectors_
               : *elements_)
        .Run(device_, a, b, fuses ? bias : nullptr, c, WorkspaceIn(scratch.data()));
    if (desc_.bias && !fuses && !StartsFromBias(desc_)) {
      AddBiasRelu(device_, {desc_.m, desc_.n, 1}, bias, false, c, desc_.out_dtype);
    }
  }

 private:
  const CudaDevice& device_;
  GemmDesc desc_;
  bool fuses_ = false;
  // The product with its bias, for aligned operands. Then the product without its bias, for aligned
  // operands and for all others: an operand that is part of an array may start at any element.
  std::optional<CublasProduct> fused_, vectors_, elements_;
};

// Accepts a product if cuBLASLt was found and has an algorithm for aligned and for other operands.
KernelOrReason<GemmPrimitive> TakeCublas(const Device& any, const GemmDesc& desc) {
  const auto* device = dynamic_cast<const CudaDevice*>(&any);
  if (device == nullptr || device->CublasLtHandle() == nullptr) {
    return Unsupported{"the library was not found"};
  }
  auto plan = std::make_unique<CublasGemm>(*device, desc);
  if (!plan->Works()) return Unsupported{"it has no algorithm for this"};
  return plan;
}

const RegisterKernel<GemmDesc, GemmPrimitive> kCublas({DeviceKind::kCuda, priority::kLibrary,
                                                       "cublasLt", TakeCublas});

}  // namespace
}  // namespace trainer::cuda
