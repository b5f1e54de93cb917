// Matrix products in a plain kernel that accepts everything. It is used if cuBLASLt is missing or
// declines.

#include "kernel_registry.h"
#include "trainer/backend/loops/launch.h"

namespace trainer::cuda {
namespace {

// A block computes kGemmTile x kGemmTile elements of C, and a thread kPart x kPart of them, in
// steps of kStep along the inner axis. Each sum is computed by one thread, in order.
constexpr int kGemmTile = 64, kStep = 16, kPart = 4, kSide = kGemmTile / kPart;
constexpr int kThreads = kSide * kSide;

// The strides of an operand: `outer` is the length along C's rows or columns, `inner` is the summed
// axis.
struct Operand {
  int64_t outer_step, inner_step, outer;
};

// Loads a tile of an operand, with zeros outside of it: kGemmTile elements from `first` on along
// the outer axis, kStep from `begin` on along the inner one. Neighbouring threads read neighbouring
// addresses.
template <class T>
__device__ void LoadOperandTile(const T* from, Operand in, int64_t first, int64_t begin, int64_t k,
                                float tile[kStep][kGemmTile + 1]) {
  for (int e = threadIdx.x; e < kStep * kGemmTile; e += kThreads) {
    const int along = in.inner_step == 1 ? e / kStep : e % kGemmTile;
    const int step = in.inner_step == 1 ? e % kStep : e / kGemmTile;
    const int64_t outer = first + along, inner = begin + step;
    tile[step][along] = outer < in.outer && inner < k
                            ? Load(from[outer * in.outer_step + inner * in.inner_step])
                            : 0.0f;
  }
}

// The terms that are added to the product.
struct Result {
  const float* bias;  // null: no bias
  bool accumulate;
};

// Computes one tile of C per block.
template <class In, class Out>
__global__ void __launch_bounds__(kThreads)
    MultiplyKernel(const In* a, Operand of_a, const In* b, Operand of_b, int64_t k, Out* c,
                   Result result) {
  __shared__ float rows[kStep][kGemmTile + 1], columns[kStep][kGemmTile + 1];
  const int64_t m = of_a.outer, n = of_b.outer, across = (n + kGemmTile - 1) / kGemmTile;
  const int64_t row = blockIdx.x / across * kGemmTile, column = blockIdx.x % across * kGemmTile;
  const int y = threadIdx.x / kSide, x = threadIdx.x % kSide;
  float sum[kPart][kPart] = {};
  for (int64_t begin = 0; begin < k; begin += kStep) {
    LoadOperandTile(a, of_a, row, begin, k, rows);
    LoadOperandTile(b, of_b, column, begin, k, columns);
    __syncthreads();
    for (int step = 0; step < kStep; ++step) {
#pragma unroll
      for (int i = 0; i < kPart; ++i) {
#pragma unroll
        for (int j = 0; j < kPart; ++j) {
          sum[i][j] += rows[step][y + i * kSide] * columns[step][x + j * kSide];
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kPart; ++i) {
#pragma unroll
    for (int j = 0; j < kPart; ++j) {
      const int64_t r = row + y + i * kSide, at = column + x + j * kSide;
      if (r >= m || at >= n) continue;
      float value = sum[i][j];
      if (result.bias != nullptr) value += result.bias[at];
      if (result.accumulate) value += Load(c[r * n + at]);
      Store(c[r * n + at], value);
    }
  }
}

// Launches MultiplyKernel.
class GpuLoopGemm final : public GemmPrimitive {
 public:
  GpuLoopGemm(const Device& device, const GemmDesc& desc) : device_(device), desc_(desc) {}

  std::string kernel() const override { return "loops"; }
  void Run(const void* a, const void* b, const float* bias, void* c,
           std::span<std::byte>) override {
    DispatchDtype(desc_.dtype, [&](auto in) {
      DispatchDtype(desc_.out_dtype, [&](auto out) {
        using In = typename decltype(in)::Type;
        using Out = typename decltype(out)::Type;
        const int64_t m = desc_.m, n = desc_.n, k = desc_.k;
        const Operand of_a = desc_.trans_a ? Operand{1, m, m} : Operand{k, 1, m};
        const Operand of_b = desc_.trans_b ? Operand{k, 1, n} : Operand{1, n, n};
        const int64_t tiles = ((m + kGemmTile - 1) / kGemmTile) * ((n + kGemmTile - 1) / kGemmTile);
        Launch(device_, MultiplyKernel<In, Out>, dim3(static_cast<unsigned>(tiles)), dim3(kThreads),
               static_cast<const In*>(a), of_a, static_cast<const In*>(b), of_b, k,
               static_cast<Out*>(c), Result{desc_.bias ? bias : nullptr, desc_.accumulate});
      });
    });
  }

 private:
  const Device& device_;
  GemmDesc desc_;
};

// Accepts every product. It is the last candidate.
KernelOrReason<GemmPrimitive> TakeGpuLoops(const Device& device, const GemmDesc& desc) {
  return std::make_unique<GpuLoopGemm>(device, desc);
}

const RegisterKernel<GemmDesc, GemmPrimitive> kGpuLoops({DeviceKind::kCuda, priority::kReference,
                                                         "loops", TakeGpuLoops});

}  // namespace
}  // namespace trainer::cuda
