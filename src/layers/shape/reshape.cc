#include "shared/checks.h"
#include "shared/nchw_reshape.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kReshapeParam[] = "reshape_param";

// Gives the input another shape with the same row-major order: see NchwReshape.
class Reshape final : public Layer {
 public:
  explicit Reshape(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::ReshapeParameter& param = spec_.proto().reshape_param();
    const Shape& in = ctx.Input(0);
    const int axis = param.axis() < 0 ? in.Rank() + 1 + param.axis() : param.axis();
    if (axis < 0 || axis > in.Rank()) {
      spec_.FailIn(kReshapeParam, "axis",
                   Join("axis is ", param.axis(), "; for an input of shape ", Dims(in),
                        " it must be ", -in.Rank() - 1, " to ", in.Rank()));
    }
    if (param.num_axes() < -1 || axis + std::max(param.num_axes(), 0) > in.Rank()) {
      spec_.FailIn(kReshapeParam, "num_axes",
                   Join("num_axes is ", param.num_axes(), "; from axis ", axis, " on, the input ",
                        Dims(in), " has ", in.Rank() - axis, " (or -1: all of them)"));
    }
    const int end = param.num_axes() < 0 ? in.Rank() : axis + param.num_axes();
    reorder_.Setup(ctx, in.Replace(axis, end, ResolveDims(in, axis, end)));
  }
  void Forward(const RunContext& run) override { reorder_.Forward(run); }
  void Backward(const RunContext& run) override { reorder_.Backward(run); }

 private:
  // Returns the lengths that replace the axes [axis, end): 0 copies the input's length, and one -1
  // is inferred from the count. Throws kConfig if the counts do not agree.
  std::vector<int64_t> ResolveDims(const Shape& in, int axis, int end) const {
    const auto& dims = spec_.proto().reshape_param().shape().dim();
    std::vector<int64_t> result(dims.begin(), dims.end());
    int inferred = -1;
    int64_t known = 1;
    for (int i = 0; i < dims.size(); ++i) {
      if (dims[i] == 0 && axis + i >= in.Rank()) {
        Refuse(Join("dim ", i, " is 0, which copies axis ", axis + i, ", but the input ", Dims(in),
                    " has ", in.Rank(), " axes"));
      }
      if (dims[i] < -1) Refuse(Join("dim ", i, " is ", dims[i], "; write a length, 0 or -1"));
      if (dims[i] == -1 && inferred >= 0)
        Refuse("-1 (inferred) is given more than once; give it once only");
      if (dims[i] == 0) result[static_cast<size_t>(i)] = in[axis + i];
      if (dims[i] == -1) {
        inferred = i;
      } else if (__builtin_mul_overflow(known, result[static_cast<size_t>(i)], &known)) {
        Refuse("the new shape is too large for any memory");
      }
    }
    const int64_t count = in.Count(axis, end);
    const bool fits = inferred < 0 ? known == count : known > 0 && count % known == 0;
    if (!fits) {
      Refuse(Join("the new shape has ", inferred < 0 ? "" : "a multiple of ", known,
                  " values, but the axes that it replaces in ", Dims(in), " have ", count));
    }
    if (inferred >= 0) result[static_cast<size_t>(inferred)] = count / known;
    return result;
  }
  [[noreturn]] void Refuse(const std::string& message) const {
    spec_.FailIn(kReshapeParam, "shape", message);
  }

  LayerSpec spec_;
  NchwReshape reorder_;
};

const RegisterLayer<Reshape> kReshape(
    "Reshape",
    {.text = "The same values with another shape.\n"
             "shape replaces num_axes axes (default -1: all) from `axis` (default 0). A dim of 0 "
             "copies the length of the same axis; one dim of -1 is inferred. The values keep their "
             "row-major order (N, C, H, W). Images with several channels and pixels are copied; "
             "everything else is a view.",
     .param = kReshapeParam,
     .dtypes = DtypePolicy::kFollowsConsumers});

}  // namespace
}  // namespace trainer
