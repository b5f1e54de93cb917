#pragma once
// One layer, run inside a real net.

#include <memory>
#include <string>
#include <vector>

#include "support/golden.h"
#include "trainer/net/net.h"

namespace trainer {

struct RunnerOptions {
  int outputs = 1;
  caffe::Phase phase = caffe::TRAIN;
  bool training = true;
  int learning_outputs = -1;  // how many outputs get a gradient; -1: all, of a loss the first
  bool in_place = false;      // top 0 has the name of bottom 0
  BufferReuse memory = BufferReuse::kPoisoned;
  uint64_t seed = 1;
  OutputFiles output_files = OutputFiles::kDisabled;
};

// All numbers go in and out in row-major order, images as (N, C, H, W).
class LayerRunner {
 public:
  // `prototxt` is what a layer holds besides name, bottom and top: `type: "ReLU" ...`. It starts at
  // kFirstLine of the net's file. Inputs are called x0, x1, ..., outputs y0, y1, ..., the layer
  // "it".
  static constexpr int kFirstLine = 3;
  LayerRunner(const std::string& prototxt, const std::vector<Shape>& inputs,
              const RunnerOptions& options = {});
  ~LayerRunner();

  int NumParams() const { return static_cast<int>(layer_params_.size()); }
  const Param& ParamAt(int i) const { return *layer_params_[static_cast<size_t>(i)]; }
  Layer& layer() const;

  void SetInput(int i, const std::vector<float>& values);
  void SetParam(int i, const std::vector<float>& values);
  std::vector<float> GetParam(int i) const;
  // Numbers in [-1, 1] on a grid of 1/16, the same in every run, at least `gap` away from `kink`.
  static std::vector<float> SomeValues(int64_t count, uint32_t stream, float kink = 0,
                                       float gap = 0);

  // Every Forward draws the same random numbers, those of pass `pass`.
  void Forward(uint32_t pass = 0);
  // With the gradient of each output; those left out are zero.
  void Backward(const std::vector<std::vector<float>>& output_gradients);

  // Sets input 0, runs, and returns output 0.
  std::vector<float> Forward(const std::vector<float>& x);

  const std::vector<float>& Output(int i = 0) const;
  const Shape& OutputShape(int i = 0) const;
  std::vector<float> InputGradient(int i = 0) const;
  std::vector<float> ParamGradient(int i) const;

  struct GradientCheck {
    std::vector<int> inputs = {0};  // which ones are checked
    int output = 0;
    bool params = true;
    float step = 1e-2f, bound = 1e-2f;
  };
  // Compares the gradients at the current inputs and parameters with central differences.
  void ExpectGradient(const GradientCheck& check);
  void ExpectGradient() { ExpectGradient(GradientCheck()); }

 private:
  class Impl;
  float Objective();
  bool HasImage() const;
  void CompareWithDifferences(Param* param, const std::vector<float>& analytic,
                              const std::string& what, const GradientCheck& check);

  std::string type_;
  std::unique_ptr<Impl> impl_;
  std::vector<Param*> input_params_, layer_params_;
};

// What making a layer out of `prototxt` with these inputs refuses with; fails the test when nothing
// is refused.
std::string RefusalOf(const std::string& prototxt, const std::vector<Shape>& inputs,
                      const RunnerOptions& options = {});

// A golden case of one layer: tensors named `inputs` are fed (by default x, x1, ...), those named
// `outputs` expected (y, y1, ...). Where there are gradients of the outputs ("d" + name; 1 for a
// scalar that has none), also the gradients of the inputs ("d" + name) and of the parameters
// ("weight", "bias", "param2", ...). Parameters that nothing is learned for keep their start.
struct GoldenUse {
  std::vector<std::string> inputs = {};
  std::vector<std::string> outputs = {};
  float bound = 1e-5f;
};
void ExpectGolden(const GoldenCase& golden, const GoldenUse& use = {},
                  const RunnerOptions& options = {});
// Every case of a file in tests/golden.
void ExpectGoldenFile(const std::string& file, float bound = 1e-5f);

// Outputs and gradients with top 0 named like bottom 0, bit for bit those with another name. Input
// i holds values[i], made-up ones where that is missing or empty.
void ExpectInPlaceEqual(const std::string& prototxt, const std::vector<Shape>& inputs,
                        const std::vector<std::vector<float>>& values = {},
                        const RunnerOptions& options = {});

// Outputs and gradients with forward_type BFLOAT16 are near those without; on a GPU those with
// FLOAT16, too, within an eighth of the bound. Inputs, parameters and output gradients are made up,
// and exact in all; inputs stay `gap` away from `kink`.
struct Bf16Use {
  float bound = 0.02f;
  float kink = 0, gap = 0;
  std::vector<std::vector<float>> inputs = {};  // where given: of input i
};
void ExpectBf16Near(const std::string& prototxt, const std::vector<Shape>& inputs,
                    const Bf16Use& use = {}, const RunnerOptions& options = {});

// |actual - expected| <= bound * max(1, |expected|) for each number.
void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected, float bound,
                const std::string& what = "");

}  // namespace trainer
