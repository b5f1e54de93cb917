#pragma once
// Layers that map each element alone, defined by their two formulas.

#include <cmath>

#include "trainer/backend/loops/map.h"
#include "trainer/layers/layer.h"

namespace trainer {

// The value that the gradient of y = f(x) needs in addition to dy. A layer that does not need x may
// work in place.
enum class Keeps { kNothing, kInput, kOutput };

// Computes y = f(x) of one element.
template <class Math>
struct UnaryForward {
  Math math;
  HD float operator()(float x) const { return math.Forward(x); }
};

// Computes dx = dy * f'(x) of one element; v is x, y or dy, as Math::Keep says.
template <class Math>
struct UnaryBackward {
  Math math;
  HD float operator()(float dy, float v) const { return math.Backward(dy, v); }
};

// A layer y = f(x) for each element, with the shape and storage type of its input. Math is a
// copyable struct of numbers:
//   explicit Math(const LayerSpec& spec);         reads and checks the fields
//   Keeps Keep() const;                           what Backward reads in addition to dy
//   HD float Forward(float x) const;              returns f(x)
//   HD float Backward(float dy, float v) const;   returns dx; v: x or y as Keep says, else dy
// In place of the last two, Choose(use) may call `use(formula)` with a struct that has them.
template <class Math>
class Unary final : public Layer {
 public:
  explicit Unary(const LayerSpec& spec) : math_(spec) {}

  void Setup(SetupContext& ctx) override {
    ctx.Output(0, ctx.Input(0), ctx.InputType(0));
    if (math_.Keep() == Keeps::kInput) return ctx.SaveInput(0);
    if (math_.Keep() == Keeps::kOutput) ctx.SaveOutput(0);
    ctx.AllowInPlace();
  }
  void Forward(const RunContext& run) override {
    WithFormula([&]<class Formula>(const Formula& formula) {
      Map(run.device(), UnaryForward<Formula>{formula}, run.Output(0), run.Input(0));
    });
  }
  bool Recomputes() const override { return true; }
  void Backward(const RunContext& run) override {
    const ConstTensor& dy = run.GradOutput(0);
    const ConstTensor v = math_.Keep() == Keeps::kInput    ? run.Input(0)
                          : math_.Keep() == Keeps::kOutput ? ConstTensor(run.Output(0))
                                                           : dy;
    WithFormula([&]<class Formula>(const Formula& formula) {
      Map(run.device(), UnaryBackward<Formula>{formula}, run.GradInput(0), dy, v);
    });
  }

 private:
  template <class Use>
  void WithFormula(const Use& use) const {
    if constexpr (requires { math_.Choose(use); }) {
      math_.Choose(use);
    } else {
      use(math_);
    }
  }

  Math math_;
};

}  // namespace trainer
