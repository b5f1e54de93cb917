#include <algorithm>

#include "shared/checks.h"
#include "shared/host_upload.h"
#include "trainer/backend/loops/map.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Copies row row[i] of `from` to row i of `to`; writes 0 if row[i] is negative.
template <class T>
struct TakeRows {
  const T* from;
  const int32_t* row;
  T* to;
  int64_t length;

  HD void operator()(int64_t i) const {
    const int64_t at = row[i / length];
    Store(to[i], at < 0 ? 0.0f : Load(from[at * length + i % length]));
  }
};

// Keeps the items for which the selector, the last input, is not 0. Forward reads the selector on
// the host, because it must resize the outputs to the number of kept items.
class Filter final : public Layer {
 public:
  explicit Filter(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    ctx.RunsOnHost();
    const int last = ctx.NumInputs() - 1;
    if (ctx.NumOutputs() != last) {
      spec_.Fail(
          Join("has ", ctx.NumInputs(), " bottoms and ", ctx.NumOutputs(),
               " tops; give one top per bottom, except the last bottom, which selects the items"));
    }
    const Shape& selector = ctx.Input(last);
    if (selector.Rank() < 1 || selector.Count(1) != 1 || ctx.InputType(last) != DType::kF32) {
      spec_.Fail(
          "bottom",
          Join("bottom '", spec_.proto().bottom(last), "' has shape ", Dims(selector),
               "; the last bottom must be a selector (N, 1, ...) with one f32 number per item"),
          last);
    }
    const int64_t items = selector[0];
    for (int i = 0; i < last; ++i) {
      if (ctx.Input(i).Rank() == 0 || ctx.Input(i)[0] != items) {
        spec_.Fail(
            "bottom",
            Join("bottom '", spec_.proto().bottom(i), "' has shape ", Dims(ctx.Input(i)),
                 ", but the selector '", spec_.proto().bottom(last), "' has ", items, " items"),
            i);
      }
      ctx.Output(i, ctx.Input(i), ctx.InputType(i));
      ctx.OutputIsDynamic(i);
    }
    ctx.NotDifferentiable(last);
    selected_.resize(static_cast<size_t>(items));
    layout_ = {};
    chosen_ = layout_.Add<int32_t>(items);
    place_ = layout_.Add<int32_t>(items);
    ctx.Workspace(layout_.Bytes());
  }

  void Prepare(PrepareContext& ctx) override { upload_.Prepare(ctx.device(), layout_.Bytes()); }

  void Forward(const RunContext& run) override {
    const int last = run.NumInputs() - 1;
    run.device().CopyToHost(selected_.data(), run.Input(last).data,
                            selected_.size() * sizeof(float));
    const std::span<std::byte> host = upload_.Host();
    int32_t* const chosen = chosen_.At(host);
    int32_t* const place = place_.At(host);
    int32_t count = 0;
    for (size_t i = 0; i < selected_.size(); ++i) {
      place[i] = selected_[i] != 0 ? count : -1;
      if (selected_[i] != 0) chosen[count++] = static_cast<int32_t>(i);
    }
    upload_.Send(run.Workspace().data(), 0, layout_.Bytes());
    for (int i = 0; i < last; ++i) {
      run.Resize(i, run.Input(i).shape.With(0, count));
      TakeSelected(run.device(), run.Input(i), chosen_.At(run.Workspace()), run.Output(i));
    }
  }

  // Items that were not kept get gradient 0.
  void Backward(const RunContext& run) override {
    for (int i = 0; i + 1 < run.NumInputs(); ++i) {
      if (!run.NeedsGradInput(i)) continue;
      if (run.HasGradOutput(i)) {
        TakeSelected(run.device(), run.GradOutput(i), place_.At(run.Workspace()), run.GradInput(i));
      } else {
        run.device().Zero(run.GradInput(i).data, run.GradInput(i).Bytes());
      }
    }
  }

 private:
  // Copies rows of `from` as TakeRows does, for the storage type of `from`.
  static void TakeSelected(const Device& device, const ConstTensor& from, const int32_t* row,
                           const Tensor& to) {
    DispatchDtype(from.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEach(device, to.Count(),
              TakeRows<T>{from.As<T>(), row, to.As<T>(), std::max<int64_t>(1, to.shape.Count(1))});
    });
  }

  LayerSpec spec_;
  std::vector<float> selected_;  // the selector on the host
  // Computed on the host, then copied to the workspace. chosen_ has the input index of each
  // selected item; place_ has the output index of each item, or -1 if the item is not selected.
  ScratchLayout layout_;
  ScratchRegion<int32_t> chosen_, place_;
  HostUpload upload_;
};

const RegisterLayer<Filter> kFilter(
    "Filter",
    {.text =
         "Keeps the items of a batch for which the last bottom, a selector (N, 1, ...), is not "
         "0.\n"
         "top i: the kept items of bottom i, (n, ...); n is 0 to N and can differ in each pass. "
         "The layers after it work on n items, and means and losses count only these. If n is 0, "
         "the layers after it do not run: their outputs and gradients are 0. The selector gets no "
         "gradient.",
     .param = "",
     .arity = {.min_in = 2, .max_in = -1, .min_out = 1, .max_out = -1}});

}  // namespace
}  // namespace trainer
