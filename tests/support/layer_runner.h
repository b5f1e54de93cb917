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
  int learning_outputs = -1;  // outputs that get a gradient; -1: all, or a loss's first
  bool in_place = false;      // top 0 has the name of bottom 0
  BufferReuse memory = BufferReuse::kPoisoned;
  uint64_t seed = 1;
  OutputFiles output_files = OutputFiles::kDisabled;
};

// All numbers are passed and returned in row-major order, images as (N, C, H, W).
class LayerRunner {
 public:
  // `prototxt` is the content of a layer except name, bottom and top: `type: "ReLU" ...`. It starts
  // at line kFirstLine of the net's file. Inputs are called x0, x1, ..., outputs y0, y1, ..., the
  // layer "it".
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
  // Returns numbers in [-1, 1] on a grid of 1/16, the same in every run, at least `gap` away from
  // `kink`.
  static std::vector<float> SomeValues(int64_t count, uint32_t stream, float kink = 0,
                                       float gap = 0);

  // Runs the net forward. Every call draws the same random numbers, the ones of pass `pass`.
  void Forward(uint32_t pass = 0);
  // Runs backward with the gradient of each output; omitted ones are zero.
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

// Returns the error with which a layer made from `prototxt` with these inputs is refused; fails the
// test if it is not refused.
std::string RefusalOf(const std::string& prototxt, const std::vector<Shape>& inputs,
                      const RunnerOptions& options = {});

// A golden case of one layer feeds the tensors named `inputs` (by default x, x1, ...) and expects
// the tensors named `outputs` (y, y1, ...). If it has gradients of the outputs ("d" + name; 1 for a
// scalar without one), it also expects the gradients of the inputs ("d" + name) and of the
// parameters ("weight", "bias", "param2", ...). Parameters that do not learn keep their initial
// values.
struct GoldenUse {
  std::vector<std::string> inputs = {};
  std::vector<std::string> outputs = {};
  float bound = 1e-5f;
};
void ExpectGolden(const GoldenCase& golden, const GoldenUse& use = {},
                  const RunnerOptions& options = {});
// Checks every case of a file in tests/golden.
void ExpectGoldenFile(const std::string& file, float bound = 1e-5f);

// Expects the same outputs and gradients, bit for bit, whether top 0 has the name of bottom 0 or
// another name. Input i holds values[i], or synthetic ones if that is missing or empty.
void ExpectInPlaceEqual(const std::string& prototxt, const std::vector<Shape>& inputs,
                        const std::vector<std::vector<float>>& values = {},
                        const RunnerOptions& options = {});

// Expects outputs and gradients with forward_type BFLOAT16 near the results without it; on a GPU
// also with FLOAT16, within an eighth of the bound. Inputs, parameters and output gradients are
// synthetic, and exact in all types; inputs stay `gap` away from `kink`.
struct Bf16Use {
  float bound = 0.02f;
  float kink = 0, gap = 0;
  std::vector<std::vector<float>> inputs = {};  // values of input i, if given
};
void ExpectBf16Near(const std::string& prototxt, const std::vector<Shape>& inputs,
                    const Bf16Use& use = {}, const RunnerOptions& options = {});

// Expects |actual - expected| <= bound * max(1, |expected|) for each number.
void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected, float bound,
                const std::string& what = "");

}  // namespace trainer
