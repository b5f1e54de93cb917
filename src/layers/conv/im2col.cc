#include "conv/conv_geometry.h"
#include "trainer/backend/loops/map.h"
#include "trainer/tensor/nchw_order.h"

namespace trainer {
namespace {

// The geometry of the windows, as kernels can hold it. Columns are the layer's output: channel c *
// size + k holds the elements that kernel element k of channel c meets, for all windows.
struct Windows {
  static constexpr int kMax = Shape::kMaxAxes;
  int axes = 0;
  int64_t size = 1;  // elements per kernel
  int64_t in[kMax], out[kMax], kernel[kMax], stride[kMax], pad[kMax], dilation[kMax];
  NchwOrder in_order, out_order;

  // Returns the input element of column element i, both in memory order; -1 in the padding.
  HD int64_t InputElement(int64_t i) const {
    int64_t left = out_order.Plain(i), place[kMax];
    for (int a = axes - 1; a >= 0; --a) {
      place[a] = left % out[a] * stride[a] - pad[a];
      left /= out[a];
    }
    for (int a = axes - 1; a >= 0; --a) {
      place[a] += left % kernel[a] * dilation[a];
      left /= kernel[a];
    }
    for (int a = 0; a < axes; ++a) {
      if (place[a] < 0 || place[a] >= in[a]) return -1;
      left = left * in[a] + place[a];
    }
    return in_order.Memory(left);
  }

  // Returns the column element to which kernel element `k` copies the element at `place` of plane
  // `plane`; -1 if no window does so.
  HD int64_t ColumnElement(int64_t plane, const int64_t* place, int64_t k) const {
    int64_t window[kMax], left = k;
    for (int a = axes - 1; a >= 0; --a) {
      const int64_t start = place[a] + pad[a] - left % kernel[a] * dilation[a];
      left /= kernel[a];
      if (start < 0 || start % stride[a] != 0 || start / stride[a] >= out[a]) return -1;
      window[a] = start / stride[a];
    }
    int64_t at = plane * size + k;
    for (int a = 0; a < axes; ++a) at = at * out[a] + window[a];
    return out_order.Memory(at);
  }
};

// Computes element i of the columns; 0 in the padding.
template <class T>
struct TakeColumns {
  const T* x;
  T* y;
  Windows windows;
  HD void operator()(int64_t i) const {
    const int64_t at = windows.InputElement(i);
    Store(y[i], at < 0 ? 0.0f : Load(x[at]));
  }
};

// Computes element i of the input's gradient: the sum over the column elements that copied it.
template <class T>
struct SumColumns {
  const T* dy;
  T* dx;
  Windows windows;
  HD void operator()(int64_t i) const {
    int64_t left = windows.in_order.Plain(i), place[Windows::kMax];
    for (int a = windows.axes - 1; a >= 0; --a) {
      place[a] = left % windows.in[a];
      left /= windows.in[a];
    }
    float sum = 0;
    for (int64_t k = 0; k < windows.size; ++k) {
      const int64_t at = windows.ColumnElement(left, place, k);
      if (at >= 0) sum += Load(dy[at]);
    }
    Store(dx[i], sum);
  }
};

// Arranges the windows of a convolution as channels: the matrix that a convolution by matrix
// product multiplies by. convolution_param gives the axis and the geometry.
class Im2col final : public Layer {
 public:
  explicit Im2col(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const ConvGeometry geometry = ReadConvGeometry(spec_, ctx.Input(0), ctx.InputType(0));
    const ConvDesc& desc = geometry.desc;
    RequireFit(spec_, desc);
    const std::vector<int64_t> out = desc.Out();
    windows_ = {};
    windows_.axes = static_cast<int>(out.size());
    for (size_t a = 0; a < out.size(); ++a) {
      windows_.size *= desc.kernel[a];
      windows_.in[a] = desc.in[a];
      windows_.out[a] = out[a];
      windows_.kernel[a] = desc.kernel[a];
      windows_.stride[a] = desc.stride[a];
      windows_.pad[a] = desc.pad[a];
      windows_.dilation[a] = desc.dilation[a];
    }
    std::vector<int64_t> dims = {desc.batch, desc.in_channels * windows_.size};
    dims.insert(dims.end(), out.begin(), out.end());
    const Shape shape = geometry.LayerShape(Shape(dims));
    windows_.in_order = NchwOrder(ctx.Input(0));
    windows_.out_order = NchwOrder(shape);
    ctx.Output(0, shape, ctx.InputType(0));
  }

  void Forward(const RunContext& run) override {
    DispatchDtype(run.Input(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEach(run.device(), run.Output(0).Count(),
              TakeColumns<T>{run.Input(0).As<T>(), run.Output(0).As<T>(), windows_});
    });
  }

  void Backward(const RunContext& run) override {
    DispatchDtype(run.GradInput(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEach(run.device(), run.GradInput(0).Count(),
              SumColumns<T>{run.GradOutput(0).As<T>(), run.GradInput(0).As<T>(), windows_});
    });
  }

 private:
  LayerSpec spec_;
  Windows windows_;
};

const RegisterLayer<Im2col> kIm2col(
    "Im2col",
    {.text = "The values in the windows of a convolution, arranged as channels.\n"
             "bottom (N, C, spatial...), top (N, C * kernel size, out...), with out as for a "
             "Convolution with the same convolution_param, including `axis`. Channel c * kernel "
             "size + k has kernel element k of channel c. Padding counts as zeros.",
     .param = "convolution_param",
     .dtypes = DtypePolicy::kFollowsConsumers});

}  // namespace
}  // namespace trainer
