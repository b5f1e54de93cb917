#include "conv/stochastic_pool.h"

#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

// The sizes of a PoolDesc, as kernels can hold them.
struct StochasticWindows {
  int64_t channels, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w;

  explicit StochasticWindows(const PoolDesc& d)
      : channels(d.channels),
        in_h(d.in_h),
        in_w(d.in_w),
        out_h(d.out_h),
        out_w(d.out_w),
        kernel_h(d.kernel_h),
        kernel_w(d.kernel_w),
        stride_h(d.stride_h),
        stride_w(d.stride_w) {}

  // Calls visit(position h * W + w, index of the element) for the window of output `at`, row by
  // row, until it returns true.
  template <class Visit>
  HD void Scan(int64_t at, const Visit& visit) const {
    const int64_t c = at % channels, pixel = at / channels;
    const int64_t ow = pixel % out_w, oh = pixel / out_w % out_h, n = pixel / out_w / out_h;
    for (int64_t h = oh * stride_h; h < oh * stride_h + kernel_h && h < in_h; ++h) {
      for (int64_t w = ow * stride_w; w < ow * stride_w + kernel_w && w < in_w; ++w) {
        if (visit(h * in_w + w, ((n * in_h + h) * in_w + w) * channels + c)) return;
      }
    }
  }
};

// Computes output `at` in training: draws one value of its window with a probability proportional
// to the value, and stores its position in `choice`. A 0 is drawn only if the whole window is 0.
template <class T>
struct DrawOne {
  StochasticWindows windows;
  const T* x;
  T* y;
  int32_t* choice;
  PhiloxKey key;
  const uint32_t* pass;

  HD void operator()(int64_t at) const {
    float sum = 0;
    windows.Scan(at, [&](int64_t, int64_t i) {
      sum += Load(x[i]);
      return false;
    });
    const float goal = UniformFloat(PhiloxWord(key, *pass, static_cast<uint64_t>(at))) * sum;
    float passed = 0, value = 0;
    int64_t place = -1;
    windows.Scan(at, [&](int64_t here, int64_t i) {
      value = Load(x[i]);
      passed += value;
      place = here;
      return passed >= goal && value != 0;
    });
    Store(y[at], value);
    choice[at] = static_cast<int32_t>(place);
  }
};

// Computes output `at` in testing: sum x^2 / sum x over its window, 0 if the sum is not positive.
template <class T>
struct WeightedMean {
  StochasticWindows windows;
  const T* x;
  T* y;

  HD void operator()(int64_t at) const {
    float sum = 0, squares = 0;
    windows.Scan(at, [&](int64_t, int64_t i) {
      const float value = Load(x[i]);
      sum += value;
      squares += value * value;
      return false;
    });
    Store(y[at], sum > 0 ? squares / sum : 0.0f);
  }
};

// Computes one element of the input's gradient: the sum of the gradients of the windows that drew
// it.
template <class T>
struct Collect {
  StochasticWindows windows;
  const T* dy;
  const int32_t* choice;
  T* dx;

  // Returns the first window that reaches position p.
  HD static int64_t First(int64_t p, int64_t kernel, int64_t stride) {
    return p < kernel ? 0 : (p - kernel) / stride + 1;
  }

  HD void operator()(int64_t i) const {
    const StochasticWindows& s = windows;
    const int64_t c = i % s.channels, pixel = i / s.channels;
    const int64_t w = pixel % s.in_w, h = pixel / s.in_w % s.in_h, n = pixel / s.in_w / s.in_h;
    float sum = 0;
    for (int64_t oh = First(h, s.kernel_h, s.stride_h); oh <= h / s.stride_h && oh < s.out_h;
         ++oh) {
      for (int64_t ow = First(w, s.kernel_w, s.stride_w); ow <= w / s.stride_w && ow < s.out_w;
           ++ow) {
        const int64_t at = ((n * s.out_h + oh) * s.out_w + ow) * s.channels + c;
        if (choice[at] == h * s.in_w + w) sum += Load(dy[at]);
      }
    }
    Store(dx[i], sum);
  }
};

}  // namespace

void StochasticPoolTrain(const Device& device, const PoolDesc& desc, const PhiloxKey& key,
                         const uint32_t* pass, const ConstTensor& x, const Tensor& y,
                         int32_t* choice) {
  DispatchDtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    ForEach(device, y.Count(),
            DrawOne<T>{StochasticWindows(desc), x.As<T>(), y.As<T>(), choice, key, pass});
  });
}

void StochasticPoolTest(const Device& device, const PoolDesc& desc, const ConstTensor& x,
                        const Tensor& y) {
  DispatchDtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    ForEach(device, y.Count(), WeightedMean<T>{StochasticWindows(desc), x.As<T>(), y.As<T>()});
  });
}

void StochasticPoolBackward(const Device& device, const PoolDesc& desc, const ConstTensor& dy,
                            const int32_t* choice, const Tensor& dx) {
  DispatchDtype(dx.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    ForEach(device, dx.Count(),
            Collect<T>{StochasticWindows(desc), dy.As<T>(), choice, dx.As<T>()});
  });
}

}  // namespace trainer
