#include "cuda/loops.h"
#include "kernel_registry.h"
#include "lrn_generic.h"
#include "trainer/base/text/text.h"

namespace trainer::cuda {
namespace {

// Elements that a block holds in shared memory at a time. A tile consists of whole pixels, which
// are neighbours in memory.
constexpr int kLrnTile = 4096;
constexpr int kShares = kLrnTile / map_internal::kBlock;  // elements of a tile per thread

// A tensor cut into tiles.
struct Tiles {
  int64_t count, channels, tile;  // all in elements; a tile has whole pixels

  Tiles(int64_t numbers, int64_t length)
      : count(numbers), channels(length), tile(kLrnTile / length * length) {}
  // Returns the number of tiles.
  HD int64_t Number() const { return (count + tile - 1) / tile; }
};

// Calls f(index in the tile, channel, k) for the thread's elements k = 0, 1, ... of the tile.
template <class F>
__device__ void ForTile(int64_t length, int64_t channels, const F& f) {
#pragma unroll
  for (int k = 0; k < kShares; ++k) {
    const int i = k * map_internal::kBlock + static_cast<int>(threadIdx.x);
    if (i < length) f(i, i % static_cast<int>(channels), k);
  }
}

// Calls f(index in the tile, channel) for the thread's elements, if nothing is kept in registers
// per element.
template <class F>
__device__ void ForTileInTurn(int64_t length, int64_t channels, const F& f) {
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < length; i += map_internal::kBlock) {
    f(i, i % static_cast<int>(channels));
  }
}

// Loads the tile at offset `at` to shared memory, as floats, and returns its length. Called by all
// threads of a block.
template <class T>
__device__ int64_t LoadTile(const T* x, const Tiles& tiles, int64_t at, float* numbers) {
  const int64_t rest = tiles.count - at, length = rest < tiles.tile ? rest : tiles.tile;
  ForTile(length, tiles.channels, [&](int i, int, int) { numbers[i] = Load(x[at + i]); });
  __syncthreads();
  return length;
}

// Computes y = x * base^-beta with base = k + factor * (sum of squares).
template <class T, class Power>
__global__ void __launch_bounds__(map_internal::kBlock)
    LrnForwardKernel(const T* x, T* y, Tiles tiles, int64_t half, float k, float factor,
                     Power power) {
  __shared__ float numbers[kLrnTile];
  const SquareOf<float> square{numbers};
  for (int64_t t = blockIdx.x; t < tiles.Number(); t += gridDim.x) {
    const int64_t at = t * tiles.tile, length = LoadTile(x, tiles, at, numbers);
    ForTileInTurn(length, tiles.channels, [&](int i, int c) {
      const float base = k + factor * SumAround(square, i - c, c, tiles.channels, half);
      Store(y[at + i], numbers[i] * power.Norm(base));
    });
    __syncthreads();
  }
}

// Computes dx = dy * base^-beta - slope * x * (sum of the neighbours' dy * x * base^(-beta - 1)).
// Computing the base from x again is cheaper than storing it.
template <class T, class Power>
__global__ void __launch_bounds__(map_internal::kBlock, 2)
    LrnBackwardKernel(const T* x, const T* dy, T* dx, Tiles tiles, int64_t half, float k,
                      float factor, float slope, Power power) {
  __shared__ float numbers[kLrnTile], shares[kLrnTile];
  const SquareOf<float> square{numbers};
  const NumberOf share{shares};
  for (int64_t t = blockIdx.x; t < tiles.Number(); t += gridDim.x) {
    const int64_t at = t * tiles.tile, length = LoadTile(x, tiles, at, numbers);
    float own[kShares];
    ForTile(length, tiles.channels, [&](int i, int c, int n) {
      const float base = k + factor * SumAround(square, i - c, c, tiles.channels, half);
      float norm, steep;
      power.Both(base, &norm, &steep);
      const float grad = Load(dy[at + i]);
      own[n] = grad * norm;
      shares[i] = grad * numbers[i] * steep;
    });
    __syncthreads();
    ForTile(length, tiles.channels, [&](int i, int c, int n) {
      const float sum = SumAround(share, i - c, c, tiles.channels, half);
      Store(dx[at + i], own[n] - slope * numbers[i] * sum);
    });
    __syncthreads();
  }
}

// The usual sums, over five channels, for channels whose number four divides. A thread takes groups
// of four neighbouring channels of a pixel, which share most of their terms.
constexpr int64_t kUsualHalf = 2;
constexpr int kGroupsOfThread = 2, kTileGroups = kGroupsOfThread * map_internal::kBlock;
using FourFloats = map_internal::Four<float>;

// A tensor cut into tiles of whole pixels; all lengths are in groups of four channels.
struct GroupTiles {
  int64_t count = 0;         // of the tensor
  int groups = 1, tile = 1;  // of a pixel, of a tile
  float inverse_groups = 1;

  GroupTiles(int64_t elements, int64_t channels)
      : count(elements / 4),
        groups(static_cast<int>(channels / 4)),
        tile(kTileGroups / groups * groups),
        inverse_groups(1 / static_cast<float>(groups)) {}
  HD int64_t Number() const { return (count + tile - 1) / tile; }
  // Returns the length of tile t.
  HD int Length(int64_t t) const {
    const int64_t left = count - t * tile;
    return left < tile ? static_cast<int>(left) : tile;
  }
  // Returns the place in its pixel of group g of a tile. The product is exact enough for a quotient
  // below kTileGroups, and takes less time than a division.
  HD int InPixel(int g) const {
    return g - static_cast<int>((static_cast<float>(g) + 0.5f) * inverse_groups) * groups;
  }
};

template <class T>
HD FourFloats LoadFour(const T* from, int64_t g) {
  const map_internal::Four<T> read = map_internal::ReadFour(from, g);
  FourFloats values;
  for (int k = 0; k < 4; ++k) values.x[k] = Load(read.x[k]);
  return values;
}

// Returns the sums around the four channels of group g of a tile, which is at place `c` of its
// pixel, in the order of SumAround.
HD FourFloats SumsAround(const FourFloats* terms, int g, int c, int groups) {
  float window[8] = {};
  if (c > 0) {
    window[0] = terms[g - 1].x[2];
    window[1] = terms[g - 1].x[3];
  }
  for (int k = 0; k < 4; ++k) window[2 + k] = terms[g].x[k];
  if (c + 1 < groups) {
    window[6] = terms[g + 1].x[0];
    window[7] = terms[g + 1].x[1];
  }
  FourFloats sums;
  for (int k = 0; k < 4; ++k) {
    sums.x[k] = window[k] + window[k + 1] + window[k + 2] + window[k + 3] + window[k + 4];
  }
  return sums;
}

HD FourFloats SquaresOf(const FourFloats& x) {
  FourFloats squares;
  for (int k = 0; k < 4; ++k) squares.x[k] = x.x[k] * x.x[k];
  return squares;
}

// Calls f(n, g) for each group of this thread: group g of a tile of `length` groups is its n-th.
template <class F>
__device__ __forceinline__ void ForEachGroup(int length, const F& f) {
#pragma unroll
  for (int n = 0; n < kGroupsOfThread; ++n) {
    const int g = n * map_internal::kBlock + static_cast<int>(threadIdx.x);
    if (g < length) f(n, g);
  }
}

// Does the same as LrnForwardKernel.
template <class T, class Power>
__global__ void __launch_bounds__(map_internal::kBlock, 4)
    LrnForwardGroupsKernel(const T* x, T* y, GroupTiles tiles, float k, float factor, Power power) {
  __shared__ FourFloats squares[kTileGroups];
  for (int64_t t = blockIdx.x; t < tiles.Number(); t += gridDim.x) {
    const int64_t first = t * tiles.tile;
    const int length = tiles.Length(t);
    FourFloats own[kGroupsOfThread] = {};
    ForEachGroup(length, [&](int n, int g) { own[n] = LoadFour(x, first + g); });
    ForEachGroup(length, [&](int n, int g) { squares[g] = SquaresOf(own[n]); });
    __syncthreads();
    ForEachGroup(length, [&](int n, int g) {
      FourFloats values = SumsAround(squares, g, tiles.InPixel(g), tiles.groups);
      for (int j = 0; j < 4; ++j) {
        values.x[j] = own[n].x[j] * power.Norm(k + factor * values.x[j]);
      }
      map_internal::WriteFour(values, y, first + g);
    });
    __syncthreads();
  }
}

// Does the same as LrnBackwardKernel.
template <class T, class Power>
__global__ void __launch_bounds__(map_internal::kBlock, 4)
    LrnBackwardGroupsKernel(const T* x, const T* dy, T* dx, GroupTiles tiles, float k, float factor,
                            float slope, Power power) {
  __shared__ FourFloats squares[kTileGroups], shares[kTileGroups];
  for (int64_t t = blockIdx.x; t < tiles.Number(); t += gridDim.x) {
    const int64_t first = t * tiles.tile;
    const int length = tiles.Length(t);
    // x, and dy, which becomes dy * base^-beta.
    FourFloats own[kGroupsOfThread] = {}, grad[kGroupsOfThread] = {};
    ForEachGroup(length, [&](int n, int g) {
      own[n] = LoadFour(x, first + g);
      grad[n] = LoadFour(dy, first + g);
    });
    ForEachGroup(length, [&](int n, int g) { squares[g] = SquaresOf(own[n]); });
    __syncthreads();
    ForEachGroup(length, [&](int n, int g) {
      FourFloats share = SumsAround(squares, g, tiles.InPixel(g), tiles.groups);
      for (int j = 0; j < 4; ++j) {
        float norm, steep;
        power.Both(k + factor * share.x[j], &norm, &steep);
        share.x[j] = grad[n].x[j] * own[n].x[j] * steep;
        grad[n].x[j] *= norm;
      }
      shares[g] = share;
    });
    __syncthreads();
    ForEachGroup(length, [&](int n, int g) {
      FourFloats values = SumsAround(shares, g, tiles.InPixel(g), tiles.groups);
      for (int j = 0; j < 4; ++j) {
        values.x[j] = grad[n].x[j] - slope * own[n].x[j] * values.x[j];
      }
      map_internal::WriteFour(values, dx, first + g);
    });
    __syncthreads();
  }
}

// Sums across channels, in one pass per direction; needs no workspace.
template <class Power>
class GpuLrnOnePass final : public LrnPrimitive {
 public:
  GpuLrnOnePass(const Device& device, const LrnDesc& desc, Power power)
      : device_(device), desc_(desc), power_(power), tiles_(desc.shape.Count(), desc.shape[1]) {}

  std::string kernel() const override { return "one pass"; }

  void Forward(ConstTensor x, Tensor y, std::span<std::byte>) override {
    for (const ConstTensor& tensor : {x, ConstTensor(y)}) Expect(tensor);
    if (tiles_.count == 0) return;
    DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      if (TakesGroups(x.As<T>(), y.As<T>(), y.As<T>())) {
        const GroupTiles tiles(tiles_.count, tiles_.channels);
        Launch(device_, LrnForwardGroupsKernel<T, Power>, loops_internal::Blocks(tiles.Number()),
               map_internal::kBlock, x.As<T>(), y.As<T>(), tiles, desc_.k, desc_.factor, power_);
        return;
      }
      Launch(device_, LrnForwardKernel<T, Power>, loops_internal::Blocks(tiles_.Number()),
             map_internal::kBlock, x.As<T>(), y.As<T>(), tiles_, desc_.half, desc_.k, desc_.factor,
             power_);
    });
  }

  void Backward(ConstTensor x, ConstTensor dy, Tensor dx, std::span<const std::byte>,
                std::span<std::byte>) override {
    for (const ConstTensor& tensor : {x, dy, ConstTensor(dx)}) Expect(tensor);
    if (tiles_.count == 0) return;
    const float slope = 2 * desc_.factor * desc_.beta;
    DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      if (TakesGroups(x.As<T>(), dy.As<T>(), dx.As<T>())) {
        const GroupTiles tiles(tiles_.count, tiles_.channels);
        Launch(device_, LrnBackwardGroupsKernel<T, Power>, loops_internal::Blocks(tiles.Number()),
               map_internal::kBlock, x.As<T>(), dy.As<T>(), dx.As<T>(), tiles, desc_.k,
               desc_.factor, slope, power_);
        return;
      }
      Launch(device_, LrnBackwardKernel<T, Power>, loops_internal::Blocks(tiles_.Number()),
             map_internal::kBlock, x.As<T>(), dy.As<T>(), dx.As<T>(), tiles_, desc_.half, desc_.k,
             desc_.factor, slope, power_);
    });
  }

 private:
  // Returns whether the kernels for groups of four channels take these arrays.
  template <class T>
  bool TakesGroups(const T* a, const T* b, const T* c) const {
    return desc_.half == kUsualHalf && tiles_.channels % 4 == 0 &&
           tiles_.channels <= 4 * kTileGroups && map_internal::FoursOf(tiles_.count, a, b, c) > 0;
  }
  // Throws kInternal unless the tensor has the planned shape and type.
  void Expect(const ConstTensor& tensor) const {
    ExpectPlanned("LRN", desc_.shape, desc_.dtype, tensor);
  }

  const Device& device_;
  LrnDesc desc_;
  Power power_;
  Tiles tiles_;
};

// Accepts sums across channels if a pixel's channels fit a tile.
KernelOrReason<LrnPrimitive> TakeGpuLrnOnePass(const Device& device, const LrnDesc& desc) {
  if (!desc.across) return Unsupported{"it supports sums across channels only"};
  if (desc.shape[1] < 1 || desc.shape[1] > kLrnTile) {
    return Unsupported{Join("it supports up to ", kLrnTile, " channels")};
  }
  return WithLrnPower(desc.beta, [&](auto power) -> std::unique_ptr<LrnPrimitive> {
    return std::make_unique<GpuLrnOnePass<decltype(power)>>(device, desc, power);
  });
}
// Accepts every LRN. It is the last candidate.
KernelOrReason<LrnPrimitive> TakeGpuLrnSteps(const Device& device, const LrnDesc& desc) {
  return MakeLrnInSteps(desc, Loops(device));
}

using RegisterLrn = RegisterKernel<LrnDesc, LrnPrimitive>;
const RegisterLrn kGpuLrnOnePass({DeviceKind::kCuda, priority::kOwn, "one pass",
                                  TakeGpuLrnOnePass});
const RegisterLrn kGpuLrnSteps({DeviceKind::kCuda, priority::kReference, "steps", TakeGpuLrnSteps});

}  // namespace
}  // namespace trainer::cuda
