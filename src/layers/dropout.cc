#include <cmath>

#include "trainer/backend/map.h"
#include "trainer/base/text.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

// Four elements, one block of random words: y = x * scale where the word reaches `threshold`.
template <class T>
struct DropFour {
  const T* x;
  T* y;
  PhiloxKey key;
  uint32_t pass, threshold;
  float scale;

  HD void operator()(int64_t block) const {
    const Philox4 words = PhiloxBlock(key, pass, static_cast<uint64_t>(block));
    for (int k = 0; k < 4; ++k) {
      const int64_t i = block * 4 + k;
      Store(y[i], words.x[k] >= threshold ? Load(x[i]) * scale : 0.0f);
    }
  }
};

// The elements after the last whole block.
template <class T>
struct DropTail {
  DropFour<T> drop;
  int64_t start;

  HD void operator()(int64_t k) const {
    const int64_t i = start + k;
    const uint32_t word = PhiloxWord(drop.key, drop.pass, static_cast<uint64_t>(i));
    Store(drop.y[i], word >= drop.threshold ? Load(drop.x[i]) * drop.scale : 0.0f);
  }
};

class Dropout final : public Layer {
 public:
  explicit Dropout(const LayerSpec& spec) : ratio_(spec.proto().dropout_param().dropout_ratio()) {
    if (!(ratio_ >= 0 && ratio_ < 1)) {
      spec.FailIn("dropout_param", "dropout_ratio",
                  Join("dropout_ratio is ", ratio_,
                       "; it is the share of values set to 0, from 0 to below 1"));
    }
    seed_ = spec.proto().dropout_param().random_seed();
  }

  void Plan(PlanContext& plan) override {
    if (plan.phase() == caffe::TEST) return plan.OutIsView(0, 0, plan.In(0));
    plan.Out(0, plan.In(0), plan.InType(0));
    plan.AllowInPlace();
  }
  void Forward(RunContext& run) override {
    if (run.phase() == caffe::TRAIN) Drop(run, run.In(0), run.Out(0));
  }
  void Backward(RunContext& run) override {
    if (run.phase() == caffe::TRAIN) Drop(run, run.GradOut(0), run.GradIn(0));
  }

 private:
  // The mask is a function of the pass, so Backward computes it again.
  void Drop(const RunContext& run, const ConstTensor& from, const Tensor& to) const {
    PhiloxKey key = run.key();
    if (seed_ >= 0) key.seed = static_cast<uint64_t>(seed_);
    const auto threshold = static_cast<uint32_t>(std::lround(ratio_ * 0x1p31) * 2);
    WithType(from.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const DropFour<T> drop{from.As<T>(), to.As<T>(), key,
                             run.pass(),   threshold,  1 / (1 - ratio_)};
      const int64_t blocks = from.Count() / 4;
      ForEach(run.device(), blocks, drop);
      ForEach(run.device(), from.Count() % 4, DropTail<T>{drop, blocks * 4});
    });
  }

  float ratio_;
  int64_t seed_ = -1;
};

const RegisterLayer<Dropout> kDropout(
    "Dropout",
    {.text = "Sets a random share of the values to 0 in training; passes its input on in testing.\n"
             "The values that stay are divided by 1 - dropout_ratio. Any shape; may work in place. "
             "dropout_ratio: from 0 to below 1, default 0.5. The "
             "choice depends on the seed, the layer's name, the pass and the element only.",
     .param = "dropout_param"});

}  // namespace
}  // namespace trainer
