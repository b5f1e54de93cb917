#include "cuda/bias_relu.h"

#include "cuda/loops.h"

namespace trainer::cuda {
namespace {

template <class T>
struct BiasRelu {
  const T* y;
  const float* bias;
  bool relu;

  HD float operator()(int64_t at, int64_t channel) const {
    const float value = bias == nullptr ? Load(y[at]) : Load(y[at]) + bias[channel];
    return relu && value < 0 ? 0.0f : value;
  }
};

struct Bias {
  const float* bias;
  HD float operator()(int64_t, int64_t channel) const { return bias[channel]; }
};

}  // namespace

void AddBiasRelu(const Device& device, const Rows& rows, const float* bias, bool relu, void* y,
                 DType dtype) {
  WithType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* const to = static_cast<T*>(y);
    Loops(device).MapInPixels(PixelChunks{rows}, BiasRelu<T>{to, bias, relu}, to, false);
  });
}

void SetBias(const Device& device, const Rows& rows, const float* bias, void* y, DType dtype) {
  WithType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    Loops(device).MapInPixels(PixelChunks{rows}, Bias{bias}, static_cast<T*>(y), false);
  });
}

}  // namespace trainer::cuda
