#include <array>

#include "trainer/backend/loops/map.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

// Returns the sum of its arguments.
struct Add {
  template <class... Floats>
  HD float operator()(Floats... x) const {
    return (... + x);
  }
};

// Gives one blob to several readers: the outputs are views of the input, and Backward sums their
// gradients, up to four in one pass over memory. The net inserts it where a blob is read more than
// once.
class Split final : public Layer {
 public:
  explicit Split(const LayerSpec&) {}

  void Setup(SetupContext& ctx) override {
    for (int i = 0; i < ctx.NumOutputs(); ++i) ctx.OutputView(i, 0, ctx.Input(0));
  }
  void Forward(const RunContext&) override {}

  void Backward(const RunContext& run) override {
    std::array<ConstTensor, 4> parts;  // the first may be the sum so far
    size_t count = 0;
    for (int i = 0; i < run.NumOutputs(); ++i) {
      if (!run.HasGradOutput(i)) continue;
      if (count == parts.size()) {
        SumParts(run, parts, count);
        parts[0] = run.GradInput(0);
        count = 1;
      }
      parts[count++] = run.GradOutput(i);
    }
    SumParts(run, parts, count);
  }

 private:
  // Adds the parts in one pass over memory. The sum may share memory with one of the parts.
  static void SumParts(const RunContext& run, const std::array<ConstTensor, 4>& parts,
                       size_t count) {
    const auto& [a, b, c, d] = parts;
    const Tensor& sum = run.GradInput(0);
    if (count == 2) Map(run.device(), Add{}, sum, a, b);
    if (count == 3) Map(run.device(), Add{}, sum, a, b, c);
    if (count == 4) Map(run.device(), Add{}, sum, a, b, c, d);
  }
};

const RegisterLayer<Split> kSplit(
    "Split", {.text = "Gives its input to several layers and adds their gradients.\n"
                      "The program inserts this layer if a blob is read more than once. It copies "
                      "nothing.\n"
                      "bottom: any shape; tops: the same shape.",
              .param = "",
              .arity = {.min_in = 1, .max_in = 1, .min_out = 1, .max_out = -1},
              .dtypes = DtypePolicy::kFollowsConsumers});

}  // namespace
}  // namespace trainer
