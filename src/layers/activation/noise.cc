#include "shared/checks.h"
#include "shared/normal.h"
#include "trainer/backend/loops/map_random.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kNoiseParam[] = "noise_param";

// Adds Gaussian noise: `normal` is a standard normal number.
struct AddScaledNoise {
  float amount;
  HD float operator()(float normal, float x) const { return x + amount * normal; }
};

// Replaces x with probability `amount`: half of the replaced values become 0, the other half 1.
struct SaltAndPepper {
  float amount;
  HD float operator()(uint32_t word, float x) const {
    const float u = UniformFloat(word);
    if (u >= amount) return x;
    return u < 0.5f * amount ? 0.0f : 1.0f;
  }
};

// Sets x to 0 with probability `amount`, else returns it. MASKING uses it for values and gradients,
// and SALT_AND_PEPPER for gradients: with the same words, it zeroes the gradients of the replaced
// values.
struct ZeroSome {
  float amount;
  HD float operator()(uint32_t word, float x) const {
    return UniformFloat(word) < amount ? 0.0f : x;
  }
};

// Draws 1 with probability x, else 0.
struct DrawNoiseBit {
  HD float operator()(uint32_t word, float x) const { return UniformFloat(word) < x ? 1.0f : 0.0f; }
};

// Copies a gradient.
struct SameNoise {
  HD float operator()(float x) const { return x; }
};

// Adds noise of one of the kinds of NoiseParameter in training. In phase TEST the output is a view
// of the input unless in_test is set. The constructor throws kConfig for a negative amount, and for
// a probability above 1.
class Noise final : public Layer {
 public:
  explicit Noise(const LayerSpec& spec) : spec_(spec), param_(spec.proto().noise_param()) {
    const float amount = param_.amount();
    const bool gaussian = param_.kind() == caffe::NoiseParameter::GAUSSIAN;
    if (amount >= 0 && (gaussian || amount <= 1)) return;
    spec.FailIn(kNoiseParam, "amount",
                gaussian ? Join("amount is ", amount, "; a standard deviation must be 0 or more")
                         : Join("amount is ", amount, "; a probability must be from 0 to 1"));
  }

  void Setup(SetupContext& ctx) override {
    ctx.UsesRandom();
    RequireF32(ctx, spec_);
    if (IsIdentityIn(ctx.phase())) return ctx.OutputView(0, 0, ctx.Input(0));
    ctx.Output(0, ctx.Input(0));
    ctx.AllowInPlace();
    if (param_.kind() == caffe::NoiseParameter::BERNOULLI) ctx.NotDifferentiable(0);
  }

  void Forward(const RunContext& run) override {
    if (IsIdentityIn(run.phase())) return;
    const float amount = param_.amount();
    switch (param_.kind()) {
      case caffe::NoiseParameter::GAUSSIAN:
        return MapNormal(run.device(), run.rng_key(), run.pass_counter(), AddScaledNoise{amount},
                         run.Input(0).f32(), run.Output(0).f32(), run.Input(0).Count());
      case caffe::NoiseParameter::SALT_AND_PEPPER:
        return MapWithRandom(run, SaltAndPepper{amount}, run.Input(0), run.Output(0));
      case caffe::NoiseParameter::MASKING:
        return MapWithRandom(run, ZeroSome{amount}, run.Input(0), run.Output(0));
      case caffe::NoiseParameter::BERNOULLI:
        return MapWithRandom(run, DrawNoiseBit{}, run.Input(0), run.Output(0));
    }
  }

  // The random words are a function of the pass, so Backward draws them again instead of storing
  // them.
  void Backward(const RunContext& run) override {
    if (IsIdentityIn(run.phase()) || !run.NeedsGradInput(0)) return;
    if (param_.kind() == caffe::NoiseParameter::GAUSSIAN) {
      return Map(run.device(), SameNoise{}, run.GradInput(0), run.GradOutput(0));
    }
    MapWithRandom(run, ZeroSome{param_.amount()}, run.GradOutput(0), run.GradInput(0));
  }

 private:
  // Returns true if the output is the input unchanged in this phase.
  bool IsIdentityIn(caffe::Phase phase) const { return phase == caffe::TEST && !param_.in_test(); }

  // Computes y = f(random word, x) for each element. Backward of the same pass draws the same
  // words.
  template <class F>
  static void MapWithRandom(const RunContext& run, F f, const ConstTensor& x, const Tensor& y) {
    MapRandom(run.device(), run.rng_key(), run.pass_counter(), f, y, x);
  }

  LayerSpec spec_;
  caffe::NoiseParameter param_;
};

const RegisterLayer<Noise> kNoise(
    "Noise",
    {.text = "Adds noise to the input in training; copies its input in testing unless in_test is "
             "set.\n"
             "GAUSSIAN adds a normal number with standard deviation `amount`. SALT_AND_PEPPER "
             "sets a value to 0 or 1 with probability `amount`; MASKING sets it to 0. BERNOULLI "
             "draws 1 with the value as the probability, else 0. Replaced values get no gradient, "
             "and BERNOULLI passes no gradient. Any shape; may work in place. The noise depends "
             "only on the seed, the layer's name, the pass and the element.",
     .param = kNoiseParam});

}  // namespace
}  // namespace trainer
