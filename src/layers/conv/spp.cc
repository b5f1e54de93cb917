#include "conv/pool_window.h"
#include "shared/checks.h"
#include "trainer/backend/loops/map.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kSppParam[] = "spp_param";

struct AddLevel {
  HD float operator()(float a, float b) const { return a + b; }
};

// The windows of one level along one axis: `bins` windows of `size` elements cover `length`
// elements and `pad` on each side.
struct Bins {
  int64_t size, pad;
  Bins(int64_t length, int64_t bins)
      : size((length + bins - 1) / bins), pad((size * bins - length + 1) / 2) {}
};

// Spatial pyramid pooling: level i pools into 2^i x 2^i bins, and the levels are concatenated to
// one row per item. Scratch holds a level's images, which are converted to row-major order there
// and copied to the top. A single level is pooled directly into the top. Source: He et al.,
// arXiv:1406.4729.
class Spp final : public Layer {
 public:
  explicit Spp(const LayerSpec& spec) : spec_(spec) {
    const caffe::SPPParameter& param = spec.proto().spp_param();
    if (!param.has_pyramid_height()) {
      spec.Fail("pyramid_height is not given; it is the number of levels");
    }
    if (param.pyramid_height() < 1) {
      spec.FailIn(kSppParam, "pyramid_height", "pyramid_height is 0; it must be at least 1");
    }
    if (param.pool() == caffe::SPPParameter::STOCHASTIC) {
      spec.FailIn(kSppParam, "pool", "STOCHASTIC pooling does not allow padding; use MAX or AVE");
    }
  }

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    RequireRank(ctx, spec_, 0, 4, 4, "images (N, C, H, W)");
    levels_.clear();
    columns_ = 0;
    for (uint32_t i = 0; i < spec_.proto().spp_param().pyramid_height(); ++i) {
      const PoolDesc desc = LevelWindows(ctx, static_cast<int>(i));
      levels_.push_back({desc, desc.OutShape(), nullptr, 0});
      columns_ += desc.OutShape().Count(1);
    }
    const Shape& in = ctx.Input(0);
    if (levels_.size() == 1) return ctx.Output(0, levels_[0].shape);
    ctx.Output(0, {in[0], columns_});
    ScratchLayout scratch;
    image_ = scratch.Add<float>(levels_.back().shape.Count());
    plain_ = scratch.Add<float>(levels_.back().shape.Count());
    part_ = scratch.Add<float>(in.Count());
    ctx.Scratch(scratch.Bytes());
  }

  void Prepare(PrepareContext& ctx) override {
    ScratchLayout kept;
    for (Level& level : levels_) {
      level.pool = ctx.device().NewPool(level.desc);
      level.kept_at = kept.AddBytes(level.pool->WorkspaceBytes()).offset;
    }
    ctx.Workspace(kept.Bytes());
  }

  void Forward(const RunContext& run) override {
    if (levels_.size() == 1) {
      return levels_[0].pool->Forward(run.Input(0), run.Output(0), run.Workspace());
    }
    float* const plain = plain_.At(run.Scratch());
    int64_t start = 0;
    for (const Level& level : levels_) {
      const Tensor image{image_.At(run.Scratch()), level.shape};
      level.pool->Forward(run.Input(0), image, run.Workspace().subspan(level.kept_at));
      CopyToNchw(run.device(), image, plain);
      const int64_t length = level.shape.Count(1);
      run.device().Copy(BlockCopy(sizeof(float), level.shape[0], length, length, columns_), plain,
                        run.Output(0).f32() + start);
      start += length;
    }
  }

  // Sums the gradients of all levels: the first one overwrites the input's gradient, the others are
  // added to it.
  void Backward(const RunContext& run) override {
    if (levels_.size() == 1) {
      return levels_[0].pool->Backward(run.GradOutput(0), run.GradInput(0), run.Workspace());
    }
    float* const plain = plain_.At(run.Scratch());
    const Tensor part{part_.At(run.Scratch()), run.GradInput(0).shape};
    int64_t start = 0;
    for (const Level& level : levels_) {
      const Tensor image{image_.At(run.Scratch()), level.shape};
      const int64_t length = level.shape.Count(1);
      run.device().Copy(BlockCopy(sizeof(float), level.shape[0], length, columns_, length),
                        run.GradOutput(0).f32() + start, plain);
      CopyFromNchw(run.device(), plain, image);
      const Tensor& to = start == 0 ? run.GradInput(0) : part;
      level.pool->Backward(image, to, run.Workspace().subspan(level.kept_at));
      if (start > 0) Map(run.device(), AddLevel{}, run.GradInput(0), run.GradInput(0), part);
      start += length;
    }
  }

 private:
  struct Level {
    PoolDesc desc;
    Shape shape;
    std::unique_ptr<PoolPrimitive> pool;
    size_t kept_at;  // where its part of the workspace starts
  };

  // Returns the pooling of one level. Throws kConfig if some of its bins would contain padding
  // only.
  PoolDesc LevelWindows(const SetupContext& ctx, int level) const {
    const Shape& in = ctx.Input(0);
    const int64_t bins = int64_t{1} << level;
    const Bins h(in[2], bins), w(in[3], bins);
    if (h.pad >= h.size || w.pad >= w.size) {
      spec_.FailIn(kSppParam, "pyramid_height",
                   Join("level ", level, " divides images of ", in[2], "x", in[3], " into ", bins,
                        "x", bins, " bins, and some bins would contain padding only; use at most ",
                        level, level == 1 ? " level" : " levels", ", or larger images"));
    }
    const bool clip = h.pad > 0 || w.pad > 0;
    PoolDesc desc;
    desc.method = spec_.proto().spp_param().pool() == caffe::SPPParameter::AVE
                      ? PoolMethod::kAverage
                      : PoolMethod::kMax;
    desc.batch = in[0];
    desc.channels = in[1];
    desc.in_h = in[2];
    desc.in_w = in[3];
    desc.kernel_h = desc.stride_h = h.size;
    desc.kernel_w = desc.stride_w = w.size;
    desc.pad_h = h.pad;
    desc.pad_w = w.pad;
    desc.out_h = PooledSize(in[2], h.size, h.size, h.pad, true, clip);
    desc.out_w = PooledSize(in[3], w.size, w.size, w.pad, true, clip);
    desc.training = ctx.training();
    return desc;
  }

  LayerSpec spec_;
  std::vector<Level> levels_;
  int64_t columns_ = 0;
  ScratchRegion<float> image_, plain_, part_;  // in scratch
};

const RegisterLayer<Spp> kSpp(
    "SPP",
    {.text = "Spatial pyramid pooling: images of any size become rows of equal length.\n"
             "Level i of pyramid_height pools (MAX or AVE) an image into 2^i x 2^i bins, with "
             "kernel = stride = ceil(H / bins) and pad = (kernel * bins - H + 1) / 2 rounded "
             "down, W alike. The top is (N, C * (1 + 4 + 16 + ...)), level by level in the order "
             "C, H, W; with a single level it is the pooled image (N, C, 1, 1).",
     .param = kSppParam});

}  // namespace
}  // namespace trainer
