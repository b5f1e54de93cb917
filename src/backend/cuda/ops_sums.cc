#include "cuda/ops.h"
#include "cuda/pixel_loops.h"
#include "trainer/backend/loops/grouped_sums.h"

namespace trainer::cuda {
namespace {

// Computes x, or x * times.
template <class T, class X = const T*>
struct Product {
  X x, times;  // times is null if there is none
  bool has_times;

  HD float operator()(int64_t at, int64_t = 0, int64_t = 0) const {
    return has_times ? Load(x[at]) * Load(times[at]) : Load(x[at]);
  }
  template <int V>
  HD auto Read(const Place& p) const {
    Product<T, Neighbours<T, V>> read = {LoadVector<V>(x, p.at), {}, has_times};
    if (has_times) read.times = LoadVector<V>(times, p.at);
    return read;
  }
  uintptr_t Addresses() const { return AddressOf(x) | AddressOf(times); }
};

// Computes g = dy where y > 0, else 0, and also writes it to g.
template <class T>
struct MaskedThrough {
  WrittenThrough<T, MaskedByOutput<T>> masked;

  HD float operator()(int64_t at, int64_t, int64_t c) const { return masked(at, c); }
  template <int V>
  HD auto Read(const Place& p) const {
    return Near<V>{masked.template Read<V>(p)};
  }
  uintptr_t Addresses() const { return masked.Addresses(); }

 private:
  template <int V>
  struct Near {
    ReadBy<WrittenThrough<T, MaskedByOutput<T>>, V> masked;
    HD float operator()(int64_t v, int64_t, int64_t) const { return masked(v, v); }
    HD void Write() { masked.Write(); }
  };
};

// Adds the sum of column c over the chunks to to[c].
struct AddChunks {
  const float* sums;
  int64_t columns;
  float* to;

  struct Part {
    double sum = 0;
    HD void Add(const Part& other) { sum += other.sum; }
  };
  HD Part OfChunk(int64_t k, int64_t c) const { return {sums[k * columns + c]}; }
  HD void Finish(int64_t c, const Part& all) const { to[c] += static_cast<float>(all.sum); }
};

// Adds the sum of f over each channel to to[c], for channels that are neighbours in memory, viewed
// as (rows, columns). Several chunks are summed to scratch first and then joined.
template <class F>
void AddColumnsOnGpu(const PixelLoops& loops, int64_t rows, int64_t columns, const F& f,
                     float* to) {
  PixelChunks in = GpuChunks({rows, columns});
  // Limits the number of chunks so that their sums fit the scratch.
  const int64_t most = std::max<int64_t>(1, Device::kReductionScratch / columns);
  if (in.chunks > most) in.chunk_rows = (rows + most - 1) / most;
  in.chunks = (rows + in.chunk_rows - 1) / in.chunk_rows;
  if (in.chunks == 1) return loops.SumNeighbours(in, f, to, true);
  float* const partials = loops.device().ReductionScratch();
  loops.SumNeighbours(in, f, partials, false);
  loops.JoinChunks(in, AddChunks{partials, columns, to});
}

// Returns the terms of sums along any axis: x, or x * times.
template <class T>
struct ProductTerms {
  Product<T> product;
  template <class Place>
  HD float operator()(const Place& place) const {
    return product(place.At());
  }
};

}  // namespace

void AddChannelSums(const Device& device, const ChannelSumsDesc& desc, const ConstTensor& x,
                    const ConstTensor* times, float* to) {
  if (desc.outer * desc.channels * desc.inner == 0) return;
  DispatchDtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const Product<T> f = {x.As<T>(), times == nullptr ? nullptr : times->As<T>(), times != nullptr};
    if (desc.inner == 1) {
      return AddColumnsOnGpu(PixelLoops(device), desc.outer, desc.channels, f, to);
    }
    AddSums(device, desc, ProductTerms<T>{f}, to);
  });
}

void ReluGradAndBiasGrad(const Device& device, const ChannelSumsDesc& desc, const ConstTensor& dy,
                         const ConstTensor& y, const Tensor& g, float* to) {
  if (desc.outer * desc.channels == 0) return;
  DispatchDtype(g.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    AddColumnsOnGpu(PixelLoops(device), desc.outer, desc.channels,
                    MaskedThrough<T>{{{dy.As<T>(), y.As<T>()}, g.As<T>()}}, to);
  });
}

}  // namespace trainer::cuda
