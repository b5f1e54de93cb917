#include <algorithm>
#include <cmath>

#include "shared/checks.h"
#include "trainer/backend/loops/map_rows.h"
#include "trainer/base/random/philox.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Multiplies an item of the batch by `scale`, or sets it to 0 if it is dropped. A row is a part of
// one item, so that a large item is divided among several threads. y may be x.
template <class T>
struct KeepOrDropItem {
  PhiloxKey key;
  const uint32_t* pass;  // on the device
  uint32_t threshold;    // an item is kept if its random word is at least `threshold`
  float scale;
  int64_t item_size, parts;  // elements of an item, and the rows that they form
  const T* x;
  T* y;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t item = row.index / parts, first = row.index % parts * row.length;
    const int64_t at = item * item_size + first, left = item_size - first;
    const bool keeps = PhiloxWord(key, *pass, static_cast<uint64_t>(item)) >= threshold;
    Row part = row;
    part.length = left < row.length ? left : row.length;
    part.ForEach([&](int64_t i) { Store(y[at + i], keeps ? scale * Load(x[at + i]) : 0.0f); });
  }
};

// Sets a random share drop_ratio of the items of a batch to 0 in training and multiplies the others
// by 1 / (1 - drop_ratio). In phase TEST the output is a view of the input, and the passes do
// nothing. Source: Huang et al., "Deep networks with stochastic depth", arXiv:1603.09382, with
// the scale that timm and torchvision use.
class DropPath final : public Layer {
 public:
  explicit DropPath(const LayerSpec& spec)
      : spec_(spec), ratio_(spec.proto().drop_path_param().drop_ratio()) {
    if (!(ratio_ >= 0 && ratio_ < 1)) {
      spec.FailIn("drop_path_param", "drop_ratio",
                  Join("drop_ratio is ", ratio_,
                       "; it must be the share of items set to 0, at least 0 and below 1"));
    }
  }

  void Setup(SetupContext& ctx) override {
    ctx.UsesRandom();
    if (ctx.phase() == caffe::TEST) return ctx.OutputView(0, 0, ctx.Input(0));
    RequireRank(ctx, spec_, 0, 1, Shape::kMaxAxes, "a batch of items (N, ...)");
    ctx.Output(0, ctx.Input(0), ctx.InputType(0));
    ctx.AllowInPlace();
  }
  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    if (run.phase() == caffe::TEST) return;
    Apply(run, run.Input(0), run.Output(0));
  }
  // The dropped items are a function of the pass, so Backward draws them again.
  void Backward(const RunContext& run) override {
    if (run.phase() == caffe::TEST) return;
    Apply(run, run.GradOutput(0), run.GradInput(0));
  }

 private:
  // Computes y from x with the items that are dropped in this pass.
  void Apply(const RunContext& run, const ConstTensor& x, const Tensor& y) const {
    constexpr int64_t kPart = 4096;
    const int64_t items = x.shape[0], item_size = x.Count() / items;
    const int64_t length = std::min(kPart, item_size), parts = (item_size + length - 1) / length;
    const auto threshold = static_cast<uint32_t>(std::lround(ratio_ * 0x1p31) * 2);
    DispatchDtype(x.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      MapRows(run.device(), items * parts, length,
              KeepOrDropItem<T>{run.rng_key(), run.pass_counter(), threshold, 1 / (1 - ratio_),
                                item_size, parts, x.As<T>(), y.As<T>()});
    });
  }

  LayerSpec spec_;
  float ratio_;
};

const RegisterLayer<DropPath> kDropPath(
    "DropPath",
    {.text = "Sets random items of the batch to 0 in training; copies its input in testing.\n"
             "The other items are divided by 1 - drop_ratio. At the end of a residual branch, "
             "before the sum, it skips the branch for these items (stochastic depth). Any shape "
             "(N, ...); may work in place. drop_ratio: at least 0 and below 1, default 0.1; deep "
             "nets raise it from 0 in the first block to its largest value in the last. The choice "
             "depends only on the seed, the layer's name, the pass and the item's place in the "
             "batch.",
     .param = "drop_path_param",
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
