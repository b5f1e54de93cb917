#pragma once
// Loops over a list of segments, written once for both devices: a GPU runs one launch for all
// segments, the CPU runs one loop for each.

#include <utility>

#include "trainer/backend/loops/reduce.h"
#include "trainer/backend/loops/tensor_list.h"
#include "trainer/backend/primitives/packed_weight.h"

namespace trainer {

namespace segments_internal {

#ifdef TRAINER_DEVICE_CODE
using Four = Neighbours<float, 4>;

// The packed copy of a weight, if it has one, prepared for the elements of a thread.
class PreparedCopy {
 public:
  PreparedCopy() = default;
  __device__ explicit PreparedCopy(const PackedWeight& copy)
      : to_(copy.to), dtype_(copy.form.dtype), order_(copy.form) {}

  // Writes the new value of element i of the weight, or of elements i to i + 3.
  template <class Values>
  __device__ void Put(int64_t i, const Values& values) const {
    if (to_ == nullptr) return;
    switch (dtype_) {
      case DType::kF32:
        return PutIn(static_cast<float*>(to_), i, values);
      case DType::kBF16:
        return PutIn(static_cast<BFloat16*>(to_), i, values);
      case DType::kF16:
        return PutIn(static_cast<Float16*>(to_), i, values);
    }
  }

 private:
  template <class T>
  __device__ void PutIn(T* array, int64_t i, float value) const {
    Store(array[order_.PackedIndex(i)], value);
  }
  template <class T>
  __device__ void PutIn(T* array, int64_t i, const Four& values) const {
    if (order_.IsSame()) return StoreVector(values.values, array, i);
#pragma unroll
    for (int k = 0; k < 4; ++k) PutIn(array, i + k, values.values[k]);
  }

  void* to_ = nullptr;
  DType dtype_ = DType::kF32;
  PackedOrder order_;
};

// Calls step with references to element k of each array.
template <int kArrays, class Step, size_t... A>
__device__ void CallStep(const Step& step, Four (&values)[kArrays], int k,
                         std::index_sequence<A...>) {
  step(values[A].values[k]...);
}

// Each block processes one chunk; a thread reads four neighbours of each array before it writes
// any.
template <int kArrays, class F>
__global__ void __launch_bounds__(map_internal::kBlock, 3)
    MultiTensorApplyKernel(F f, const TensorChunk* chunks, const TensorTuple* list,
                           const PackedWeight* copies) {
  constexpr std::make_index_sequence<kArrays> kAll;
  const TensorChunk chunk = chunks[blockIdx.x];
  PreparedCopy copy;
  if (copies != nullptr) copy = PreparedCopy(copies[chunk.segment]);
  float* array[kArrays];
#pragma unroll
  for (int a = 0; a < kArrays; ++a) array[a] = list[chunk.segment].array[a];
  const auto step = f(chunk.segment);
  for (int64_t i = chunk.begin + 4 * threadIdx.x; i < chunk.end; i += 4 * blockDim.x) {
    const int count = chunk.end - i < 4 ? static_cast<int>(chunk.end - i) : 4;
    Four values[kArrays] = {};
    if (chunk.aligned != 0 && count == 4) {
#pragma unroll
      for (int a = 0; a < kArrays; ++a) values[a] = *reinterpret_cast<const Four*>(array[a] + i);
#pragma unroll
      for (int k = 0; k < 4; ++k) CallStep(step, values, k, kAll);
#pragma unroll
      for (int a = 0; a < kArrays; ++a) *reinterpret_cast<Four*>(array[a] + i) = values[a];
      copy.Put(i, values[0]);
      continue;
    }
    for (int k = 0; k < count; ++k) {
#pragma unroll
      for (int a = 0; a < kArrays; ++a) values[a].values[0] = array[a][i + k];
      CallStep(step, values, 0, kAll);
#pragma unroll
      for (int a = 0; a < kArrays; ++a) array[a][i + k] = values[a].values[0];
      copy.Put(i + k, values[0].values[0]);
    }
  }
}

// Sets *partial to the sum of term(i) over the elements of a chunk. Called by all threads of a
// block.
template <class Term>
__device__ void SumChunk(const Term& term, const TensorChunk& chunk, float* partial) {
  float sum = 0;
#pragma unroll 4
  for (int64_t i = chunk.begin + threadIdx.x; i < chunk.end; i += blockDim.x) sum += term(i);
  sum = reduce_internal::SumOfBlock(sum);
  if (threadIdx.x == 0) *partial = sum;
  __syncthreads();
}

// Each block sums fs_m(segment)(k) over the elements k of chunk first + blockIdx.x, for each m,
// and writes the sums to partials[chunk][m].
template <class... Fs>
__global__ void __launch_bounds__(map_internal::kBlock)
    SumChunksKernel(const TensorChunk* chunks, const TensorTuple* list, int first, float* partials,
                    Fs... fs) {
  const int c = first + static_cast<int>(blockIdx.x);
  const TensorChunk chunk = chunks[c];
  float* to = partials + int64_t{c} * TensorList::kMaxSums;
  (SumChunk(fs(list[chunk.segment]), chunk, to++), ...);
}

// Block (x, y) sets element first + x of out0 (y = 0) or out1 (y = 1) to the sum of that segment:
// it adds the sums of its chunks as doubles.
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    SumSegmentKernel(const int32_t* first_chunks, const float* partials, int first, float* out0,
                     float* out1) {
  const int segment = first + static_cast<int>(blockIdx.x);
  const int begin = first_chunks[segment], end = first_chunks[segment + 1];
  double sum = 0;
  for (int c = begin + static_cast<int>(threadIdx.x); c < end; c += kThreads) {
    sum += partials[int64_t{c} * TensorList::kMaxSums + blockIdx.y];
  }
  sum = reduce_internal::SumOfBlock(sum);
  if (threadIdx.x == 0) (blockIdx.y == 0 ? out0 : out1)[segment] = static_cast<float>(sum);
}
#endif

// Calls step with references to element i of each array, for each i of [0, count).
template <class Step, class... Ts>
void UpdateOnCpu(int64_t count, Step step, Ts*... p) {
  ParallelFor(
      count, [=](int64_t i) __attribute__((always_inline)) { step(p[i]...); });
}
// Calls step with references to element i of each of the first sizeof...(A) arrays of a segment,
// for each i.
template <class Step, size_t... A>
void UpdateOnCpu(const TensorTuple& segment, const Step& step, std::index_sequence<A...>) {
  UpdateOnCpu(segment.count, step, segment.array[A]...);
}

// Writes element i of a weight to its packed copy.
template <class T>
struct PutCopy {
  PackedOrder order;
  const float* from;
  T* to;
  HD void operator()(int64_t i) const { Store(to[order.PackedIndex(i)], from[i]); }
};

// Writes the first array of a segment to its packed copy.
inline void CopyOnCpu(const TensorTuple& segment, const PackedWeight& copy) {
  DispatchCpuDtype(copy.form.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    ParallelFor(segment.count,
                PutCopy<T>{PackedOrder(copy.form), segment.array[0], static_cast<T*>(copy.to)});
  });
}

}  // namespace segments_internal

// For each segment i of [first, last), f(i) returns a functor, which is called for every k with
// references to element k of each of the segment's first kArrays arrays. The new value of the first
// array is also written to copies[i] if that has a target. `copies` is in device memory, or null.
template <int kArrays, class F>
void MultiTensorApply(const Device& device, const TensorList& segments, int first, int last, F f,
                      const PackedWeight* copies = nullptr) {
  static_assert(kArrays <= TensorTuple::kMaxArrays);
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    const int begin = segments.FirstChunk(first), end = segments.FirstChunk(last);
    if (end == begin) return;
    Launch(device, segments_internal::MultiTensorApplyKernel<kArrays, F>,
           static_cast<unsigned>(end - begin), map_internal::kBlock, f, segments.chunks() + begin,
           segments.list(), copies);
    return;
  }
#endif
  (void)device;
  // The last segment comes first, because the data written last is still in the caches.
  for (int i = last; i-- > first;) {
    segments_internal::UpdateOnCpu(segments[i], f(i), std::make_index_sequence<kArrays>());
    if (copies != nullptr && copies[i].to != nullptr) {
      segments_internal::CopyOnCpu(segments[i], copies[i]);
    }
  }
}

// Sums per segment: out[m][i] is the sum over the elements k of segment i of f(k), where f =
// fs_m(segment i), for each i of [first, last). `out` is on the device. Each segment is summed in
// chunks, whose sums are added as doubles, so the order of the additions depends only on the list.
template <class... Fs>
void MultiTensorReduce(const Device& device, const TensorList& segments, int first, int last,
                       float* const (&out)[sizeof...(Fs)], Fs... fs) {
  static_assert(sizeof...(Fs) <= TensorList::kMaxSums);
  if (first == last) return;
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    const int begin = segments.FirstChunk(first), end = segments.FirstChunk(last);
    if (end > begin) {
      Launch(device, segments_internal::SumChunksKernel<Fs...>, static_cast<unsigned>(end - begin),
             map_internal::kBlock, segments.chunks(), segments.list(), begin, segments.partials(),
             fs...);
    }
    constexpr unsigned kSums = sizeof...(Fs);
    Launch(device, segments_internal::SumSegmentKernel<map_internal::kBlock>,
           dim3(static_cast<unsigned>(last - first), kSums), map_internal::kBlock,
           segments.first_chunks(), segments.partials(), first, out[0], out[kSums - 1]);
    return;
  }
#endif
  for (int i = first; i < last; ++i) {
    int m = 0;
    (ReduceSum(device, segments[i].count, fs(segments[i]), 1, out[m++] + i), ...);
  }
}

}  // namespace trainer
