#include <algorithm>
#include <array>

#include "cpu/blocked_product.h"
#include "cpu/onednn.h"
#include "cpu/simd.h"
#include "kernel_registry.h"
#include "trainer/backend/loops/parallel_for.h"
#include "trainer/backend/memory/library_call.h"

namespace trainer::cpu {
namespace {

// Uses the BLAS function of oneDNN: f32 without bias, and B is not transposed.
class SgemmPlan final : public GemmPrimitive {
 public:
  explicit SgemmPlan(const GemmDesc& desc) : desc_(desc) {}

  std::string kernel() const override { return "onednn sgemm"; }
  void Run(const void* a, const void* b, const float*, void* c, std::span<std::byte>) override {
    const InLibraryCall mark;
    onednn::Check(dnnl_sgemm(desc_.trans_a ? 'T' : 'N', 'N', desc_.m, desc_.n, desc_.k, 1.0f,
                             static_cast<const float*>(a), desc_.trans_a ? desc_.m : desc_.k,
                             static_cast<const float*>(b), desc_.n, desc_.accumulate ? 1.0f : 0.0f,
                             static_cast<float*>(c), desc_.n),
                  "a matrix product");
  }

 private:
  GemmDesc desc_;
};

// Returns whether oneDNN 2.6.3 can use tile registers. With sizes that leave a tile partly filled,
// it sometimes dies of SIGILL in a thread in which it has not set up the tiles.
bool GemmTilesAreRight(const GemmDesc& desc) {
  return desc.dtype == DType::kBF16 && desc.m % 16 == 0 && desc.n % 16 == 0 && desc.k % 32 == 0;
}

// Uses the matmul primitive of oneDNN.
class MatmulPlan final : public GemmPrimitive {
 public:
  // Returns null if the library would use its reference loops. The library multiplies matrices of
  // `type`. If the operands have another type, they are converted in the scratch.
  static std::unique_ptr<GemmPrimitive> Make(const GemmDesc& desc, DType type) {
    const bool converts = type != desc.dtype;
    const auto a = Matrix(desc.m, desc.k, desc.trans_a, type);
    const auto b = Matrix(desc.k, desc.n, desc.trans_b, type);
    const auto c = Matrix(desc.m, desc.n, false, converts ? type : desc.out_dtype);
    const auto bias = Matrix(1, desc.n, false, DType::kF32);
    dnnl_matmul_desc_t op;
    onednn::Check(dnnl_matmul_desc_init(&op, &a, &b, desc.bias ? &bias : nullptr, &c),
                  "describing a matrix product");
    const onednn::Choice choice(&op, GemmTilesAreRight(desc),
                                desc.accumulate ? onednn::PostOp::kAdd : onednn::PostOp::kNone);
    if (!choice || choice.Name().starts_with("ref")) return nullptr;
    auto plan = std::make_unique<MatmulPlan>(choice, desc.bias);
    plan->multiply_.In(DNNL_ARG_SRC, Matrix(desc.m, desc.k, desc.trans_a, desc.dtype), a);
    plan->multiply_.In(DNNL_ARG_WEIGHTS, Matrix(desc.k, desc.n, desc.trans_b, desc.dtype), b);
    // The library itself adds the product to C in place, so that nothing is copied.
    plan->multiply_.Out(DNNL_ARG_DST, Matrix(desc.m, desc.n, false, desc.out_dtype), c);
    if (desc.bias) plan->multiply_.In(DNNL_ARG_BIAS, bias, bias);
    return plan;
  }

  MatmulPlan(const onednn::Choice& choice, bool bias) : multiply_(choice), bias_(bias) {}

  size_t ScratchBytes() const override { return multiply_.ScratchBytes(); }
  std::string kernel() const override { return "onednn matmul " + multiply_.Name(); }
  void Run(const void* a, const void* b, const float* bias, void* c,
           std::span<std::byte> scratch) override {
    const std::array<onednn::Data, 4> data = {
        {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}, {DNNL_ARG_BIAS, bias}}};
    multiply_.Run(std::span(data.data(), bias_ ? 4 : 3), scratch);
  }

 private:
  // Describes a matrix (rows, columns); if it is transposed, it is stored as (columns, rows).
  static dnnl_memory_desc_t Matrix(int64_t rows, int64_t columns, bool transposed, DType type) {
    if (transposed) return onednn::Strided({rows, columns}, {1, rows}, type);
    return onednn::Strided({rows, columns}, {columns, 1}, type);
  }

  onednn::Operation multiply_;
  bool bias_;
};

// Our own AVX2 loops: f32 without bias, and B is not transposed.
class OwnGemm final : public GemmPrimitive {
 public:
  explicit OwnGemm(const GemmDesc& desc)
      : desc_(desc), product_({.m = desc.m, .n = desc.n, .k = desc.k, .trans_a = desc.trans_a}) {}

  size_t ScratchBytes() const override { return product_.ScratchBytes(); }
  std::string kernel() const override { return "own product"; }
  void Run(const void* a, const void* b, const float*, void* c,
           std::span<std::byte> scratch) override {
    product_.Run({a, DType::kF32, desc_.trans_a ? desc_.m : desc_.k}, {b, DType::kF32, desc_.n},
                 {.c = static_cast<float*>(c), .accumulate = desc_.accumulate}, scratch);
  }

 private:
  GemmDesc desc_;
  BlockedProduct product_;
};

// Plain loops for descriptions that the library computes only in reference loops.
class ReferenceGemm final : public GemmPrimitive {
 public:
  explicit ReferenceGemm(const GemmDesc& desc) : desc_(desc) {}

  std::string kernel() const override { return "loops"; }
  void Run(const void* a, const void* b, const float* bias, void* c,
           std::span<std::byte>) override {
    DispatchCpuDtype(desc_.dtype, [&](auto in) {
      DispatchCpuDtype(desc_.out_dtype, [&](auto out) {
        using In = typename decltype(in)::Type;
        using Out = typename decltype(out)::Type;
        Multiply(static_cast<const In*>(a), static_cast<const In*>(b), bias, static_cast<Out*>(c));
      });
    });
  }

 private:
  // Computes each element of C in one sum, on the thread of its row.
  template <class In, class Out>
  void Multiply(const In* a, const In* b, const float* bias, Out* c) const {
    const int64_t m = desc_.m, n = desc_.n, k = desc_.k;
    const int64_t a_row = desc_.trans_a ? 1 : k, a_step = desc_.trans_a ? m : 1;
    const int64_t b_column = desc_.trans_b ? k : 1, b_step = desc_.trans_b ? 1 : n;
    const auto element = [&](int64_t i, int64_t j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += Load(a[i * a_row + l * a_step]) * Load(b[j * b_column + l * b_step]);
      }
      if (desc_.bias) sum += bias[j];
      if (desc_.accumulate) sum += Load(c[i * n + j]);
      Store(c[i * n + j], sum);
    };
    ParallelRanges(m, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j < n; ++j) element(i, j);
      }
    });
  }

  GemmDesc desc_;
};

// Accepts f32 products with AVX2 where our loops are faster. The library takes up to twice as long
// if no matrix is transposed, as in data gradients (64 x 4096 times 4096 x 9216, EPYC).
KernelOrReason<GemmPrimitive> TakeOwn(const Device&, const GemmDesc& desc) {
  if (!HasWideLanes()) return Unsupported{"it needs AVX2"};
  if (LanesFor(kLanes) == kLanes) return Unsupported{"with AVX-512 oneDNN is used"};
  if (desc.dtype != DType::kF32 || desc.out_dtype != DType::kF32) {
    return Unsupported{"it supports f32 only"};
  }
  if (desc.bias) return Unsupported{"it adds no bias"};
  if (desc.trans_b) return Unsupported{"oneDNN is as fast with a transposed second matrix"};
  if (desc.trans_a && desc.k > BlockedProduct::kDepth) {
    return Unsupported{"oneDNN is as fast with a transposed first matrix of many rows"};
  }
  if (std::min(desc.m, desc.n) < kLanes) {
    return Unsupported{"there are fewer than 16 rows or columns"};
  }
  return std::make_unique<OwnGemm>(desc);
}

// Accepts f32 products without bias if B is not transposed.
KernelOrReason<GemmPrimitive> TakeSgemm(const Device&, const GemmDesc& desc) {
  if (desc.dtype != DType::kF32 || desc.out_dtype != DType::kF32) {
    return Unsupported{"it supports f32 only"};
  }
  if (desc.bias) return Unsupported{"it adds no bias"};
  // It is a quarter faster than matmul if B is not transposed and two thirds slower if it is (64 x
  // 9216 x 4096, AVX-512).
  if (desc.trans_b) return Unsupported{"matmul is faster with a transposed second matrix"};
  return std::make_unique<SgemmPlan>(desc);
}

// Accepts every product for which the library has compiled code, if need be after converting 16-bit
// operands to floats.
KernelOrReason<GemmPrimitive> TakeMatmul(const Device&, const GemmDesc& desc) {
  std::vector<DType> types = {desc.dtype};
  // Without instructions for bf16, the library is slow with it, but multiplies floats fast.
  const bool adds_to_bf16 = desc.accumulate && desc.out_dtype != DType::kF32;
  if (desc.dtype != DType::kF32 && !adds_to_bf16) {
    types.insert(HasBf16Instructions() ? types.end() : types.begin(), DType::kF32);
  }
  for (const DType type : types) {
    if (auto plan = MatmulPlan::Make(desc, type)) return plan;
  }
  return Unsupported{"it has only reference loops for this"};
}

// Accepts every product. It is the last candidate.
KernelOrReason<GemmPrimitive> TakeLoops(const Device&, const GemmDesc& desc) {
  return std::make_unique<ReferenceGemm>(desc);
}

using RegisterGemm = RegisterKernel<GemmDesc, GemmPrimitive>;
const RegisterGemm kOwn({DeviceKind::kCpu, priority::kOwn, "own product", TakeOwn});
const RegisterGemm kSgemm({DeviceKind::kCpu, priority::kLibrary, "onednn sgemm", TakeSgemm});
const RegisterGemm kMatmul({DeviceKind::kCpu, priority::kLibrary + 10, "onednn matmul",
                            TakeMatmul});
const RegisterGemm kGemmLoops({DeviceKind::kCpu, priority::kReference, "loops", TakeLoops});

}  // namespace
}  // namespace trainer::cpu
