#include <array>

#include "trainer/backend/map.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

struct Add {
  template <class... Floats>
  HD float operator()(Floats... x) const {
    return (... + x);
  }
};

class Split final : public Layer {
 public:
  explicit Split(const LayerSpec&) {}

  void Describe(DescribeContext& plan) override {
    for (int i = 0; i < plan.NumOut(); ++i) plan.OutIsView(i, 0, plan.In(0));
  }
  void Forward(const RunContext&) override {}

  void Backward(const RunContext& run) override {
    std::array<ConstTensor, 4> parts;  // of them the sum so far is the first
    size_t count = 0;
    for (int i = 0; i < run.NumOut(); ++i) {
      if (!run.HasGradOut(i)) continue;
      if (count == parts.size()) {
        Sum(run, parts, count);
        parts[0] = run.GradIn(0);
        count = 1;
      }
      parts[count++] = run.GradOut(i);
    }
    Sum(run, parts, count);
  }

 private:
  // In one pass over memory. The output may be one of the parts.
  static void Sum(const RunContext& run, const std::array<ConstTensor, 4>& parts, size_t count) {
    const auto& [a, b, c, d] = parts;
    const Tensor& sum = run.GradIn(0);
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
              .storage = Storage::kFollows});

}  // namespace
}  // namespace trainer
