#pragma once
// Layers for tests only, which feed numbers to a net and collect its results.

#include <vector>

#include "trainer/layers/layer.h"

namespace trainer {

// "TestSource": its output is its parameter, of parameter_param's shape, so that a test can set the
// values and read their gradient with any memory plan.
class TestSource final : public Layer {
 public:
  explicit TestSource(const LayerSpec& spec) : spec_(spec) {}
  void Setup(SetupContext& ctx) override;
  void Forward(const RunContext& run) override;
  void Backward(const RunContext& run) override;

 private:
  LayerSpec spec_;
};

// "TestLoss": the sum over all inputs of input * given gradient, so that exactly these gradients
// reach the layers before it. It keeps the values of the inputs.
class TestLoss final : public Layer {
 public:
  explicit TestLoss(const LayerSpec&) {}
  void Setup(SetupContext& ctx) override;
  void Forward(const RunContext& run) override;
  void Backward(const RunContext& run) override;

  struct Input {
    Shape shape;
    std::vector<float> values;     // row-major, of the last pass
    std::vector<float> gradients;  // row-major, zeros until set
  };
  std::vector<Input>& inputs() { return inputs_; }

 private:
  std::vector<Input> inputs_;
};

}  // namespace trainer
