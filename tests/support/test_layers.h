#pragma once
// Layers that only tests have: where a net's numbers come from and where they go.

#include <vector>

#include "trainer/layers/layer.h"

namespace trainer {

// "TestSource": its output is its parameter, of parameter_param's shape, so that a test can set
// the values and read their gradient whatever the memory plan does.
class TestSource final : public Layer {
 public:
  explicit TestSource(const LayerSpec& spec) : spec_(spec) {}
  void Setup(SetupContext& ctx) override;
  void Forward(const RunContext& run) override;
  void Backward(const RunContext& run) override;

 private:
  LayerSpec spec_;
};

// "TestLoss": the sum over all inputs of input * given gradient, so that exactly those gradients
// reach the layers before. Remembers the inputs.
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
