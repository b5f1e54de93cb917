// A convolution with any number of axes in plain kernels: the last candidate for each direction.
// Each sum has a fixed order, so results repeat.

#include "conv_kernels.h"
#include "conv_positions.h"
#include "cuda/loops.h"
#include "cuda/ops.h"

namespace trainer::cuda {
namespace {

constexpr const char* kGpuConvDirectName = "direct";

// Coordinates of a tensor's element, computed from its index in memory.
struct Element {
  int64_t n, channel, position;

  HD Element(const ConvPositions& in, int64_t i, int64_t channels, int64_t area) {
    if (in.IsImage()) {
      channel = i % channels;
      position = i / channels % area;
    } else {
      position = i % area;
      channel = i / area % channels;
    }
    n = i / (channels * area);
  }
};

// Computes element i of y.
template <class T, bool kRelu>
struct Output {
  ConvPositions in;
  const T* x;
  const float *weight, *bias;
  T* y;

  HD void operator()(int64_t i) const {
    const Element out(in, i, in.out_channels, in.out_area);
    const int64_t m = out.channel, first = in.FirstRead(m);
    float sum = 0;
    for (int64_t tap = 0; tap < in.taps; ++tap) {
      const int64_t position = in.Reads(out.position, tap);
      if (position < 0) continue;
      for (int64_t c = 0; c < in.group_in; ++c) {
        sum += weight[in.WeightAt(m, c, tap)] * Load(x[in.InAt(out.n, first + c, position)]);
      }
    }
    if (bias != nullptr) sum += bias[m];
    Store(y[i], kRelu && sum <= 0 ? 0.0f : sum);
  }
};

// Computes element i of dx, as the sum over the windows that read it.
template <class T>
struct InputGradient {
  ConvPositions in;
  const T* dy;
  const float* weight;
  T* dx;

  HD void operator()(int64_t i) const {
    const Element at(in, i, in.in_channels, in.in_area);
    const int64_t group = at.channel / in.group_in, c = at.channel % in.group_in;
    const int64_t first = group * in.group_out;
    float sum = 0;
    for (int64_t tap = 0; tap < in.taps; ++tap) {
      const int64_t position = in.ReadBy(at.position, tap);
      if (position < 0) continue;
      for (int64_t m = first; m < first + in.group_out; ++m) {
        sum += Load(dy[in.OutAt(at.n, m, position)]) * weight[in.WeightAt(m, c, tap)];
      }
    }
    Store(dx[i], sum);
  }
};

// Cuts the images and output positions into parts. In each part, one thread per weight sums the
// gradient.
struct DirectParts {
  static constexpr int64_t kThreads = 1 << 16,
                           kMin = 64;  // enough threads for any GPU; least positions per part
  int64_t weights, positions, parts, size;

  explicit DirectParts(const ConvDesc& desc)
      : weights(desc.WeightShape().Count()), positions(desc.batch * desc.OutShape().Count(2)) {
    const int64_t wish = std::min(kThreads / std::max<int64_t>(1, weights), positions / kMin);
    size = (positions + std::max<int64_t>(1, wish) - 1) / std::max<int64_t>(1, wish);
    parts = size == 0 ? 0 : (positions + size - 1) / size;
  }
};

// Computes the gradient of one weight over one part.
template <class T>
struct WeightGradientOfPart {
  ConvPositions in;
  DirectParts parts;
  const T *x, *dy;
  float* sums;  // indexed by part, then by weight

  HD void operator()(int64_t i) const {
    const int64_t w = i % parts.weights, part = i / parts.weights;
    const int64_t tap = w % in.taps, c = w / in.taps % in.group_in, m = w / in.taps / in.group_in;
    const int64_t channel = in.FirstRead(m) + c;
    const int64_t begin = part * parts.size, wish = begin + parts.size;
    const int64_t end = wish < parts.positions ? wish : parts.positions;
    float sum = 0;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t n = k / in.out_area, out = k % in.out_area, position = in.Reads(out, tap);
      if (position < 0) continue;
      sum += Load(dy[in.OutAt(n, m, out)]) * Load(x[in.InAt(n, channel, position)]);
    }
    sums[i] = sum;
  }
};

// Adds the sums of all parts, in the order of the parts, to the gradient of weight w.
struct AddPartsOfWeight {
  const float* sums;
  int64_t weights, parts;
  float* to;
  HD void operator()(int64_t w) const {
    float sum = 0;
    for (int64_t k = 0; k < parts; ++k) sum += sums[k * weights + w];
    to[w] += sum;
  }
};

// Base class of the three directions.
class Direct {
 public:
  Direct(const Device& device, const ConvDesc& desc)
      : loops_(device), desc_(desc), positions_(desc) {}

 protected:
  Loops loops_;
  ConvDesc desc_;
  ConvPositions positions_;
};

// Computes each element of y in one thread.
class DirectForward final : public ConvForward, Direct {
 public:
  using Direct::Direct;
  std::string Name() const override { return kGpuConvDirectName; }
  size_t ScratchBytes() const override { return 0; }
  void Run(const void* x, const float* weight, const float* bias, void* y,
           std::span<std::byte>) override {
    const float* const added = desc_.bias ? bias : nullptr;
    DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      desc_.relu ? Run<T, true>(x, weight, added, y) : Run<T, false>(x, weight, added, y);
    });
  }

 private:
  template <class T, bool kRelu>
  void Run(const void* x, const float* weight, const float* bias, void* y) const {
    loops_.ForEach(desc_.OutShape().Count(), Output<T, kRelu>{positions_, static_cast<const T*>(x),
                                                              weight, bias, static_cast<T*>(y)});
  }
};

// Computes each element of dx in one thread.
class DirectBackwardData final : public ConvBackwardData, Direct {
 public:
  using Direct::Direct;
  std::string Name() const override { return kGpuConvDirectName; }
  size_t ScratchBytes() const override { return 0; }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte>) override {
    DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      loops_.ForEach(
          desc_.InShape().Count(),
          InputGradient<T>{positions_, static_cast<const T*>(dy), weight, static_cast<T*>(dx)});
    });
  }
};

// Sums the gradient of each weight in parts, which are then added in a fixed order.
class DirectBackwardWeight final : public ConvBackwardWeight, Direct {
 public:
  DirectBackwardWeight(const Device& device, const ConvDesc& desc)
      : Direct(device, desc), parts_(desc) {}
  std::string Name() const override { return kGpuConvDirectName; }
  size_t ScratchBytes() const override {
    return static_cast<size_t>(parts_.parts * parts_.weights) * sizeof(float);
  }
  void Run(const void* x, const void* dy, float* dweight, float* dbias,
           std::span<std::byte> scratch) override {
    auto* const sums = reinterpret_cast<float*>(scratch.data());
    const Shape out = desc_.OutShape();
    DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      loops_.ForEach(parts_.parts * parts_.weights,
                     WeightGradientOfPart<T>{positions_, parts_, static_cast<const T*>(x),
                                             static_cast<const T*>(dy), sums});
    });
    loops_.ForEach(parts_.weights, AddPartsOfWeight{sums, parts_.weights, parts_.parts, dweight});
    if (!desc_.bias || dbias == nullptr) return;
    AddChannelSums(loops_.device(), ChannelSumsDesc::Of(out, 1), ConstTensor(dy, out, desc_.dtype),
                   nullptr, dbias);
  }

 private:
  DirectParts parts_;
};

// Accepts every convolution. It is the last candidate.
template <class Step, class Made>
KernelOrReason<Step> TakeDirect(const Device& device, const ConvDesc& desc) {
  return std::make_unique<Made>(device, desc);
}

const RegisterConvKernel<ConvForward> kGpuConvDirectForward(
    {DeviceKind::kCuda, priority::kReference, kGpuConvDirectName,
     TakeDirect<ConvForward, DirectForward>});
const RegisterConvKernel<ConvBackwardData> kGpuConvDirectData(
    {DeviceKind::kCuda, priority::kReference, kGpuConvDirectName,
     TakeDirect<ConvBackwardData, DirectBackwardData>});
const RegisterConvKernel<ConvBackwardWeight> kGpuConvDirectWeight(
    {DeviceKind::kCuda, priority::kReference, kGpuConvDirectName,
     TakeDirect<ConvBackwardWeight, DirectBackwardWeight>});

}  // namespace
}  // namespace trainer::cuda
