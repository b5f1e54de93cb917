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

// Computes places in pixels without a division: the product is exact enough for a quotient below
// kLrnTile.
struct PixelPlaces {
  int length = 1;  // of a pixel
  float inverse = 1;

  explicit PixelPlaces(int64_t pixel)
      : length(static_cast<int>(pixel)), inverse(1 / static_cast<float>(pixel)) {}
  // Returns the place in its pixel of element i of a tile.
  HD int Of(int i) const {
    return i - static_cast<int>((static_cast<float>(i) + 0.5f) * inverse) * length;
  }
};

// A tensor cut into tiles of whole pixels. All lengths are in elements, or in groups of four.
struct Tiles {
  int64_t count = 0;  // of the tensor
  int tile = 1;
  PixelPlaces places;

  // `most` is the largest length of a tile.
  Tiles(int64_t numbers, int64_t pixel, int most)
      : count(numbers),
        tile(most / static_cast<int>(pixel) * static_cast<int>(pixel)),
        places(pixel) {}
  // Returns the number of tiles.
  HD int64_t Number() const { return (count + tile - 1) / tile; }
  // Returns the length of tile t.
  HD int Length(int64_t t) const {
    const int64_t left = count - t * tile;
    return left < tile ? static_cast<int>(left) : tile;
  }
};

// Calls f(i) for each of the thread's elements of a tile.
template <class F>
__device__ void ForTile(int length, const F& f) {
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < length; i += map_internal::kBlock) f(i);
}

// Loads `length` numbers to shared memory, as floats. Each thread loads its own elements.
template <class T>
__device__ void LoadTile(const T* x, int length, float* numbers) {
#pragma unroll
  for (int k = 0; k < kShares; ++k) {
    const int i = k * map_internal::kBlock + static_cast<int>(threadIdx.x);
    if (i < length) numbers[i] = Load(x[i]);
  }
}

// Computes y = x * base^-beta with base = k + factor * (sum of squares).
template <class T, class Power>
__global__ void __launch_bounds__(map_internal::kBlock, 4)
    LrnForwardKernel(const T* x, T* y, Tiles tiles, int half, float k, float factor, Power power) {
  __shared__ float numbers[kLrnTile];
  const SquareOf<float> square{numbers};
  for (int64_t t = blockIdx.x; t < tiles.Number(); t += gridDim.x) {
    const int64_t at = t * tiles.tile;
    const int length = tiles.Length(t);
    LoadTile(x + at, length, numbers);
    __syncthreads();
    ForTile(length, [&](int i) {
      const int c = tiles.places.Of(i);
      const float base = k + factor * SumAround(square, i - c, c, tiles.places.length, half);
      Store(y[at + i], numbers[i] * power.Norm(base));
    });
    __syncthreads();
  }
}

// Computes dx = dy * base^-beta - slope * x * (sum of the neighbours' dy * x * base^(-beta - 1)).
// Computing the base from x again is cheaper than storing it.
template <class T, class Power>
__global__ void __launch_bounds__(map_internal::kBlock, 4)
    LrnBackwardKernel(const T* x, const T* dy, T* dx, Tiles tiles, int half, float k, float factor,
                      float slope, Power power) {
  // `own` holds dy, and then dy * base^-beta.
  __shared__ float numbers[kLrnTile], own[kLrnTile], shares[kLrnTile];
  const SquareOf<float> square{numbers};
  const NumberOf share{shares};
  for (int64_t t = blockIdx.x; t < tiles.Number(); t += gridDim.x) {
    const int64_t at = t * tiles.tile;
    const int length = tiles.Length(t);
    LoadTile(x + at, length, numbers);
    LoadTile(dy + at, length, own);
    __syncthreads();
    ForTile(length, [&](int i) {
      const int c = tiles.places.Of(i);
      const float base = k + factor * SumAround(square, i - c, c, tiles.places.length, half);
      float norm, steep;
      power.Both(base, &norm, &steep);
      shares[i] = own[i] * numbers[i] * steep;
      own[i] *= norm;
    });
    __syncthreads();
    ForTile(length, [&](int i) {
      const int c = tiles.places.Of(i);
      const float sum = SumAround(share, i - c, c, tiles.places.length, half);
      Store(dx[at + i], own[i] - slope * numbers[i] * sum);
    });
    __syncthreads();
  }
}

// Sums over at most kMostHalf channels on each side, for channels whose number four divides. A
// thread takes groups of four neighbouring channels of a pixel, which share most of their terms.
constexpr int kMostHalf = 4;
constexpr int kGroupsOfThread = 2, kTileGroups = kGroupsOfThread * map_internal::kBlock;
using FourFloats = Neighbours<float, 4>;

template <class T>
HD FourFloats LoadFour(const T* from, int64_t g) {
  const Neighbours<T, 4> read = LoadVector<4>(from, 4 * g);
  FourFloats values;
  for (int k = 0; k < 4; ++k) values.values[k] = Load(read[k]);
  return values;
}

// Returns the sums over kHalf channels on each side of the four channels of group g of a tile,
// which is at place `c` of its pixel of `groups` groups, in the order of SumAround.
template <int kHalf>
HD FourFloats SumsAround(const FourFloats* terms, int g, int c, int groups) {
  float window[4 + 2 * kHalf] = {};
  if (c > 0) {
    for (int k = 0; k < kHalf; ++k) window[k] = terms[g - 1].values[4 - kHalf + k];
  }
  for (int k = 0; k < 4; ++k) window[kHalf + k] = terms[g].values[k];
  if (c + 1 < groups) {
    for (int k = 0; k < kHalf; ++k) window[kHalf + 4 + k] = terms[g + 1].values[k];
  }
  FourFloats sums;
  for (int k = 0; k < 4; ++k) {
    sums.values[k] = window[k];
    for (int t = 1; t <= 2 * kHalf; ++t) sums.values[k] += window[k + t];
  }
  return sums;
}

HD FourFloats SquaresOf(const FourFloats& x) {
  FourFloats squares;
  for (int k = 0; k < 4; ++k) squares.values[k] = x.values[k] * x.values[k];
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
template <class T, class Power, int kHalf>
__global__ void __launch_bounds__(map_internal::kBlock, 4)
    LrnForwardGroupsKernel(const T* x, T* y, Tiles tiles, float k, float factor, Power power) {
  __shared__ FourFloats squares[kTileGroups];
  for (int64_t t = blockIdx.x; t < tiles.Number(); t += gridDim.x) {
    const int64_t first = t * tiles.tile;
    const int length = tiles.Length(t);
    FourFloats own[kGroupsOfThread] = {};
    ForEachGroup(length, [&](int n, int g) { own[n] = LoadFour(x, first + g); });
    ForEachGroup(length, [&](int n, int g) { squares[g] = SquaresOf(own[n]); });
    __syncthreads();
    ForEachGroup(length, [&](int n, int g) {
      FourFloats values = SumsAround<kHalf>(squares, g, tiles.places.Of(g), tiles.places.length);
      for (int j = 0; j < 4; ++j) {
        values.values[j] = own[n].values[j] * power.Norm(k + factor * values.values[j]);
      }
      StoreVector(values.values, y, 4 * (first + g));
    });
    __syncthreads();
  }
}

// Does the same as LrnBackwardKernel.
template <class T, class Power, int kHalf>
__global__ void __launch_bounds__(map_internal::kBlock, 4)
    LrnBackwardGroupsKernel(const T* x, const T* dy, T* dx, Tiles tiles, float k, float factor,
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
      FourFloats share = SumsAround<kHalf>(squares, g, tiles.places.Of(g), tiles.places.length);
      for (int j = 0; j < 4; ++j) {
        float norm, steep;
        power.Both(k + factor * share.values[j], &norm, &steep);
        share.values[j] = grad[n].values[j] * own[n].values[j] * steep;
        grad[n].values[j] *= norm;
      }
      shares[g] = share;
    });
    __syncthreads();
    ForEachGroup(length, [&](int n, int g) {
      FourFloats values = SumsAround<kHalf>(shares, g, tiles.places.Of(g), tiles.places.length);
      for (int j = 0; j < 4; ++j) {
        values.values[j] = grad[n].values[j] - slope * own[n].values[j] * values.values[j];
      }
      StoreVector(values.values, dx, 4 * (first + g));
    });
    __syncthreads();
  }
}

// Sums across channels, in one pass per direction; needs no workspace.
template <class Power>
class GpuLrnOnePass final : public LrnPrimitive {
 public:
  GpuLrnOnePass(const Device& device, const LrnDesc& desc, Power power)
      : device_(device),
        desc_(desc),
        power_(power),
        half_(static_cast<int>(std::min(desc.half, desc.shape[1]))),
        tiles_(desc.shape.Count(), desc.shape[1], kLrnTile) {}

  std::string kernel() const override { return "one pass"; }

  void Forward(ConstTensor x, Tensor y, std::span<std::byte>) override {
    for (const ConstTensor& tensor : {x, ConstTensor(y)}) Expect(tensor);
    if (tiles_.count == 0) return;
    DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* const in = x.As<T>();
      T* const out = y.As<T>();
      if (WithGroups(in, out, out, [&](auto half, const Tiles& tiles) {
            Run(LrnForwardGroupsKernel<T, Power, half()>, tiles, in, out, tiles, desc_.k,
                desc_.factor, power_);
          })) {
        return;
      }
      Run(LrnForwardKernel<T, Power>, tiles_, in, out, tiles_, half_, desc_.k, desc_.factor,
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
      const T *const in = x.As<T>(), *const grad = dy.As<T>();
      T* const out = dx.As<T>();
      if (WithGroups(in, grad, out, [&](auto half, const Tiles& tiles) {
            Run(LrnBackwardGroupsKernel<T, Power, half()>, tiles, in, grad, out, tiles, desc_.k,
                desc_.factor, slope, power_);
          })) {
        return;
      }
      Run(LrnBackwardKernel<T, Power>, tiles_, in, grad, out, tiles_, half_, desc_.k, desc_.factor,
          slope, power_);
    });
  }

 private:
  // Launches a block for each tile.
  template <class Kernel, class... Args>
  void Run(Kernel kernel, const Tiles& tiles, const Args&... args) const {
    Launch(device_, kernel, loops_internal::Blocks(tiles.Number()), map_internal::kBlock, args...);
  }
  // Calls f(half as a constant, tiles of groups) if the kernels for groups of four channels take
  // these arrays. Returns whether they do.
  template <class T, class F>
  bool WithGroups(const T* a, const T* b, const T* c, const F& f) const {
    const int64_t channels = desc_.shape[1];
    if (channels % 4 != 0 || channels > 4 * kTileGroups ||
        map_internal::FoursOf(tiles_.count, a, b, c) == 0) {
      return false;
    }
    const Tiles tiles(tiles_.count / 4, channels / 4, kTileGroups);
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return ((half_ == I + 1 && (f(std::integral_constant<int, I + 1>(), tiles), true)) || ...);
    }
    (std::make_integer_sequence<int, kMostHalf>());
  }
  // Throws kInternal unless the tensor has the planned shape and type.
  void Expect(const ConstTensor& tensor) const {
    ExpectPlanned("LRN", desc_.shape, desc_.dtype, tensor);
  }

  const Device& device_;
  LrnDesc desc_;
  Power power_;
  int half_;
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
