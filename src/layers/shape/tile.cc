#include "shared/checks.h"
#include "trainer/backend/loops/map.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Computes dx as the sum over all copies.
template <class T>
struct SumTiles {
  const T* dy;
  T* dx;
  int64_t block, tiles;

  HD void operator()(int64_t i) const {
    const int64_t start = i / block * block * tiles + i % block;
    float sum = 0;
    for (int64_t t = 0; t < tiles; ++t) sum += Load(dy[start + t * block]);
    Store(dx[i], sum);
  }
};

// Repeats the input `tiles` times along `axis`; the gradient is the sum over the copies.
class Tile final : public Layer {
 public:
  explicit Tile(const LayerSpec& spec) : spec_(spec), tiles_(spec.proto().tile_param().tiles()) {
    if (!spec.proto().tile_param().has_tiles()) {
      spec.Fail("tiles is not given; it is the number of copies");
    }
    if (tiles_ < 1) {
      spec.FailIn("tile_param", "tiles", Join("tiles is ", tiles_, "; it must be at least 1"));
    }
  }

  void Setup(SetupContext& ctx) override {
    const Shape& in = ctx.Input(0);
    const int axis = AxisIn(spec_, "tile_param", "axis", spec_.proto().tile_param().axis(), in);
    const Rows rows = AxisRows(in, axis);
    block_ = rows.length * rows.inner;
    const Shape out = in.With(axis, in[axis] * tiles_);
    if (tiles_ == 1) return ctx.OutputView(0, 0, out);
    ctx.Output(0, out, ctx.InputType(0));
  }

  void Forward(const RunContext& run) override {
    if (tiles_ == 1) return;
    const CopyDesc tiles = CopyDesc(SizeOf(run.Input(0).dtype))
                               .Axis(run.Input(0).Count() / block_, block_, block_ * tiles_)
                               .Axis(tiles_, 0, block_)
                               .Axis(block_, 1, 1);
    run.device().Copy(tiles, run.Input(0).data, run.Output(0).data);
  }

  void Backward(const RunContext& run) override {
    if (tiles_ == 1) return;
    DispatchDtype(run.Input(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEach(run.device(), run.Input(0).Count(),
              SumTiles<T>{run.GradOutput(0).As<T>(), run.GradInput(0).As<T>(), block_, tiles_});
    });
  }

 private:
  LayerSpec spec_;
  int64_t tiles_, block_ = 1;
};

const RegisterLayer<Tile> kTile(
    "Tile",
    {.text = "Repeats its input `tiles` times along `axis` (default 1).\n"
             "bottom: any shape; top: the same shape with that axis `tiles` times as long. The "
             "gradient is the sum over the copies.",
     .param = "tile_param",
     .dtypes = DtypePolicy::kFollowsConsumers});

}  // namespace
}  // namespace trainer
