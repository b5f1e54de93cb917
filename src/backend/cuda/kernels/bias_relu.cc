#include "cuda/kernels/bias_relu.h"

#include "cuda/pixel_loops.h"

namespace trainer::cuda {
namespace {

// Computes y + bias, and then the maximum with 0 if `relu` is set.
template <class T, class Y = const T*, class C = const float*>
struct BiasRelu {
  Y y;
  C bias;  // null: no bias
  bool relu;

  HD float operator()(int64_t at, int64_t channel) const {
    const float value = PlusIfThere(Load(y[at]), bias, channel);
    return relu && value < 0 ? 0.0f : value;
  }
  template <int V>
  HD auto Read(const Place& p) const {
    return BiasRelu<T, Neighbours<T, V>, Neighbours<float, V>>{LoadVector<V>(y, p.at),
                                                               ReadEach<V>(bias, p.c), relu};
  }
  uintptr_t Addresses() const { return AddressOf(y); }
};

// Computes the bias of a channel.
template <class C = const float*>
struct Bias {
  C bias;
  HD float operator()(int64_t, int64_t channel) const { return bias[channel]; }
  template <int V>
  HD auto Read(const Place& p) const {
    return Bias<Neighbours<float, V>>{ReadEach<V>(bias, p.c)};
  }
  uintptr_t Addresses() const { return 0; }
};

}  // namespace

void AddBiasRelu(const Device& device, const Rows& rows, const float* bias, bool relu, void* y,
                 DType dtype) {
  DispatchDtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* const to = static_cast<T*>(y);
    PixelLoops(device).MapPixels(PixelChunks{rows}, BiasRelu<T>{to, bias, relu}, to, false);
  });
}

void SetBias(const Device& device, const Rows& rows, const float* bias, void* y, DType dtype) {
  DispatchDtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    PixelLoops(device).MapPixels(PixelChunks{rows}, Bias<>{bias}, static_cast<T*>(y), false);
  });
}

}  // namespace trainer::cuda
