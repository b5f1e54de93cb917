#include "shared/checks.h"
#include "trainer/backend/loops/map.h"
#include "trainer/base/text/text.h"
#include "trainer/tensor/nchw_order.h"

namespace trainer {
namespace {

constexpr char kReorgParam[] = "reorg_param";

// Converts between two orders of an item's numbers. "By square" is (C, H, stride, W, stride): the
// row-major order of an image (C, H * stride, W * stride) that is divided into squares. "By offset"
// is (stride, stride, C, H, W): the order of an image (stride^2 * C, H, W) whose channels are the
// positions within a square, each with C channels.
struct Squares {
  int64_t stride = 1, channels = 1, height = 1, width = 1;

  HD int64_t Size() const { return stride * stride * channels * height * width; }

  // Converts an index in the order "by offset" to one in the order "by square".
  HD int64_t ToSquareOrder(int64_t by_offset) const {
    const int64_t w = by_offset % width, h = by_offset / width % height;
    const int64_t c = by_offset / (width * height) % channels;
    const int64_t offset = by_offset / (width * height * channels);
    const int64_t down = offset / stride, right = offset % stride;
    return ((c * height + h) * stride + down) * width * stride + w * stride + right;
  }
  // Converts an index in the order "by square" to one in the order "by offset".
  HD int64_t ToOffsetOrder(int64_t by_square) const {
    const int64_t right = by_square % stride, w = by_square / stride % width;
    const int64_t line = by_square / (stride * width);
    const int64_t down = line % stride, h = line / stride % height;
    const int64_t c = line / (stride * height);
    return (((down * stride + right) * channels + c) * height + h) * width + w;
  }
};

// Copies each number to its index in the other order.
template <class T>
struct Rearrange {
  const T* from;
  T* to;
  NchwOrder from_order, to_order;
  Squares squares;
  bool to_is_by_offset;

  HD void operator()(int64_t i) const {
    const int64_t plain = to_order.Plain(i), size = squares.Size(), at = plain % size;
    const int64_t source = to_is_by_offset ? squares.ToSquareOrder(at) : squares.ToOffsetOrder(at);
    to[i] = from[from_order.Memory(plain - at + source)];
  }
};

// Moves squares of stride x stride pixels to channels, or back with `reverse`, as the reorg layer
// of YOLO v2 (arXiv:1612.08242): without `reverse`, the input is read as an image (C / stride^2, H
// * stride, W * stride) first, as the published weights need it.
class Reorg final : public Layer {
 public:
  explicit Reorg(const LayerSpec& spec) : spec_(spec) {
    const caffe::ReorgParameter& param = spec.proto().reorg_param();
    if (!param.has_stride()) {
      spec.Fail(
          "stride is not given; give the side of the squares of pixels, such as 2 in YOLO v2");
    }
    if (param.stride() < 1)
      spec.FailIn(kReorgParam, "stride", "stride is 0; it must be at least 1");
    reverse_ = param.reverse();
  }

  void Setup(SetupContext& ctx) override {
    RequireRank(ctx, spec_, 0, 4, 4, "images (N, C, H, W)");
    const Shape& in = ctx.Input(0);
    const int64_t s = spec_.proto().reorg_param().stride();
    // a larger stride squared exceeds any number of channels
    constexpr int64_t kMax = int64_t{1} << 24;
    if (s > kMax || in[1] % (s * s) != 0) {
      spec_.FailIn(kReorgParam, "stride",
                   Join("stride ", s, " needs a multiple of ", s, " * ", s,
                        " channels, but the input ", Dims(in), " has ", in[1]));
    }
    const int64_t area = s * s;
    if (!reverse_ && (in[2] % s != 0 || in[3] % s != 0)) {
      spec_.FailIn(kReorgParam, "stride",
                   Join("stride ", s, " does not divide the ", in[2], "x", in[3],
                        " pixels of the input ", Dims(in)));
    }
    squares_ = {s, in[1] / area, in[2], in[3]};
    const Shape out = reverse_ ? Shape{in[0], in[1] / area, in[2] * s, in[3] * s}
                               : Shape{in[0], in[1] * area, in[2] / s, in[3] / s};
    if (out == in) return ctx.OutputView(0, 0, out);
    ctx.Output(0, out, ctx.InputType(0));
  }

  void Forward(const RunContext& run) override {
    RearrangeAll(run.device(), run.Input(0), run.Output(0), !reverse_);
  }

  void Backward(const RunContext& run) override {
    if (run.NeedsGradInput(0))
      RearrangeAll(run.device(), run.GradOutput(0), run.GradInput(0), reverse_);
  }

 private:
  // Rearranges the numbers of `from` into `to`; nothing if the output is a view.
  void RearrangeAll(const Device& device, const ConstTensor& from, const Tensor& to,
                    bool to_is_by_offset) const {
    if (from.shape == to.shape) return;  // the output is a view
    DispatchDtype(from.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEach(device, to.Count(),
              Rearrange<T>{from.As<T>(), to.As<T>(), NchwOrder(from.shape), NchwOrder(to.shape),
                           squares_, to_is_by_offset});
    });
  }

  LayerSpec spec_;
  Squares squares_;
  bool reverse_ = false;
};

const RegisterLayer<Reorg> kReorg(
    "Reorg",
    {.text = "Squares of stride x stride pixels become channels, as in YOLO v2.\n"
             "bottom (N, C, H, W), top (N, C * stride^2, H / stride, W / stride); reverse: top "
             "(N, C / stride^2, H * stride, W * stride). The order of the values is that of the "
             "published weights, which differs from plain squares: without reverse, the bottom's "
             "values are read, in the order C, H, W, as an image (C / stride^2, H * stride, W * "
             "stride), and the squares of this image become channels. stride^2 must divide C; "
             "without reverse, stride must divide H and W.",
     .param = kReorgParam,
     .dtypes = DtypePolicy::kFollowsConsumers});

}  // namespace
}  // namespace trainer
