// The definition of a convolution and its gradients, in plain loops.

#include <cmath>

#include "support/emulated_gpu/cudnn/cudnn_objects.h"
#include "support/emulated_gpu/library.h"

namespace emulated_gpu {
namespace {

using At = int64_t[3];

// The strides, in elements, of an array with axes (outer, channel, spatial...).
struct Strides {
  int64_t outer, channel, pixel;
  At lengths;

  Strides(bool nhwc, int64_t channels, const At& of) : lengths{of[0], of[1], of[2]} {
    const int64_t pixels = of[0] * of[1] * of[2];
    outer = channels * pixels;
    channel = nhwc ? 1 : pixels;
    pixel = nhwc ? channels : 1;
  }
  int64_t operator()(int64_t o, int64_t c, const At& at) const {
    return o * outer + c * channel + ((at[0] * lengths[1] + at[1]) * lengths[2] + at[2]) * pixel;
  }
};

template <class F>
void ForAll(const At& lengths, const F& f) {
  At at;
  for (at[0] = 0; at[0] < lengths[0]; ++at[0]) {
    for (at[1] = 0; at[1] < lengths[1]; ++at[1]) {
      for (at[2] = 0; at[2] < lengths[2]; ++at[2]) f(at);
    }
  }
}

template <class T>
class Loops {
 public:
  explicit Loops(const Convolving& what)
      : c_(what.conv),
        in_group_(c_.channels / c_.groups),
        out_group_(c_.filters / c_.groups),
        x_(c_.nhwc, c_.channels, c_.in),
        w_(c_.nhwc, in_group_, c_.kernel),
        y_(c_.nhwc, c_.filters, c_.out),
        first_(static_cast<const T*>(what.first)),
        second_(static_cast<const T*>(what.second)) {}

  double Forward(int64_t image, int64_t filter, const At& out) const {
    double sum = 0;
    ForAll(c_.kernel, [&](const At& tap) {
      At in;
      if (!Input(out, tap, in)) return;
      const T* const x = first_ + x_(image, filter / out_group_ * in_group_, in);
      const T* const w = second_ + w_(filter, 0, tap);
      for (int64_t channel = 0; channel < in_group_; ++channel) {
        sum += double{Number(x[channel * x_.channel])} * Number(w[channel * w_.channel]);
      }
    });
    return sum;
  }

  double Data(int64_t image, int64_t channel, const At& in) const {
    double sum = 0;
    const int64_t group = channel / in_group_;
    ForAll(c_.kernel, [&](const At& tap) {
      At out;
      for (int axis = 0; axis < 3; ++axis) {
        const int64_t reach = in[axis] + c_.pad[axis] - tap[axis] * c_.dilation[axis];
        if (reach < 0 || reach % c_.stride[axis] != 0) return;
        out[axis] = reach / c_.stride[axis];
        if (out[axis] >= c_.out[axis]) return;
      }
      const T* const dy = second_ + y_(image, group * out_group_, out);
      const T* const w = first_ + w_(group * out_group_, channel % in_group_, tap);
      for (int64_t filter = 0; filter < out_group_; ++filter) {
        sum += double{Number(dy[filter * y_.channel])} * Number(w[filter * w_.outer]);
      }
    });
    return sum;
  }

  double Filter(int64_t filter, int64_t channel, const At& tap) const {
    double sum = 0;
    const int64_t x_channel = filter / out_group_ * in_group_ + channel;
    for (int64_t image = 0; image < c_.batch; ++image) {
      ForAll(c_.out, [&](const At& out) {
        At in;
        if (!Input(out, tap, in)) return;
        sum += double{Number(first_[x_(image, x_channel, in)])} *
               Number(second_[y_(image, filter, out)]);
      });
    }
    return sum;
  }

 private:
  float Number(const T& stored) const {
    const float value = trainer::Load(stored);
    return c_.tf32 ? RoundToTf32(value) : value;
  }
  // Sets `in` to the input pixel that output pixel `out` reads with `tap`. Returns false in the
  // padding.
  bool Input(const At& out, const At& tap, At& in) const {
    for (int axis = 0; axis < 3; ++axis) {
      in[axis] = out[axis] * c_.stride[axis] - c_.pad[axis] + tap[axis] * c_.dilation[axis];
      if (in[axis] < 0 || in[axis] >= c_.in[axis]) return false;
    }
    return true;
  }

  const Convolution& c_;
  int64_t in_group_, out_group_;
  Strides x_, w_, y_;
  const T *first_, *second_;
};

// result[at] = alpha * sum + beta * result[at], plus all that a fused call adds.
template <class T>
void Finish(const Convolving& what, double sum, int64_t at, int64_t channel) {
  T& result = static_cast<T*>(what.result)[at];
  const auto as_float = static_cast<float>(sum);
  float value = what.alpha * (what.jitter ? Jitter(as_float) : as_float);
  if (what.beta != 0) value += what.beta * trainer::Load(result);
  if (what.alpha2 != 0) value += what.alpha2 * trainer::Load(static_cast<const T*>(what.z)[at]);
  if (what.bias != nullptr) value += trainer::Load(static_cast<const T*>(what.bias)[channel]);
  if (what.relu && !(value > 0) && !(std::isnan(value) && what.keeps_nan)) value = 0;
  trainer::Store(result, value);
}

template <class T>
void ConvolveTyped(const Convolving& what) {
  const Convolution& c = what.conv;
  const Loops<T> loops(what);
  const auto each = [&](int64_t outers, int64_t channels, const At& lengths, const auto& sum) {
    const Strides strides(c.nhwc, channels, lengths);
    for (int64_t outer = 0; outer < outers; ++outer) {
      for (int64_t channel = 0; channel < channels; ++channel) {
        ForAll(lengths, [&](const At& at) {
          Finish<T>(what, sum(outer, channel, at), strides(outer, channel, at), channel);
        });
      }
    }
  };
  switch (c.direction) {
    case Direction::kForward:
      each(c.batch, c.filters, c.out,
           [&](int64_t n, int64_t m, const At& at) { return loops.Forward(n, m, at); });
      break;
    case Direction::kData:
      each(c.batch, c.channels, c.in,
           [&](int64_t n, int64_t m, const At& at) { return loops.Data(n, m, at); });
      break;
    case Direction::kFilter:
      each(c.filters, c.channels / c.groups, c.kernel,
           [&](int64_t m, int64_t n, const At& at) { return loops.Filter(m, n, at); });
  }
}

}  // namespace

void Convolve(const Convolving& what) {
  trainer::DispatchDtype(what.conv.type,
                         [&](auto tag) { ConvolveTyped<typename decltype(tag)::Type>(what); });
}

}  // namespace emulated_gpu
