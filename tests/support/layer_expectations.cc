// Expectations of layer tests beyond one run: refusals, golden values, in place = not in place.

#include <gtest/gtest.h>

#include <cmath>

#include "support/layer_checks.h"
#include "support/layer_runner.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"

namespace trainer {

std::string RefusalOf(const std::string& prototxt, const std::vector<Shape>& inputs,
                      const RunnerOptions& options) {
  try {
    LayerRunner runner(prototxt, inputs, options);
  } catch (const Error& error) {
    LayerChecks::Get().Refused(TypeIn(prototxt), error.what());
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused in: " << prototxt;
  return "";
}

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected, float bound,
                const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    const float size = std::max(1.0f, std::fabs(expected[i]));
    EXPECT_NEAR(actual[i], expected[i], bound * size) << what << ", element " << i;
  }
}

namespace {

// Returns the given names, or stem, stem1, ... as far as the case has them.
std::vector<std::string> NamesOf(const GoldenCase& golden, const std::vector<std::string>& given,
                                 const std::string& stem) {
  std::vector<std::string> names = given;
  for (std::string name = stem; given.empty() && golden.tensors.count(name) > 0;
       name = Join(stem, names.size())) {
    names.push_back(name);
  }
  return names;
}

// Returns the parameters that learn, with their names in golden files.
std::vector<std::pair<int, std::string>> LearningParams(const LayerRunner& runner) {
  std::vector<std::pair<int, std::string>> params;
  for (int i = 0; i < runner.NumParams(); ++i) {
    if (runner.ParamAt(i).lr_mult == 0) continue;
    const size_t number = params.size();
    params.emplace_back(i, number > 1 ? Join("param", number) : number == 0 ? "weight" : "bias");
  }
  return params;
}

void ExpectGoldenGradients(const GoldenCase& golden, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs, float bound,
                           LayerRunner& runner) {
  std::vector<std::vector<float>> seeds;
  for (const std::string& name : outputs) {
    const auto found = golden.tensors.find("d" + name);
    seeds.emplace_back();
    if (found != golden.tensors.end()) seeds.back() = found->second.values;
  }
  if (seeds[0].empty() && runner.OutputShape().Rank() == 0 && golden.tensors.count("dx") > 0) {
    seeds[0] = {1};
  }
  if (seeds[0].empty()) return;
  runner.Backward(seeds);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto wanted = golden.tensors.find("d" + inputs[i]);
    if (wanted == golden.tensors.end()) continue;
    ExpectNear(runner.InputGradient(static_cast<int>(i)), wanted->second.values, bound,
               wanted->first);
  }
  for (const auto& [i, name] : LearningParams(runner)) {
    ExpectNear(runner.ParamGradient(i), golden.Tensor("d" + name).values, bound, "d" + name);
  }
}

}  // namespace

void ExpectGolden(const GoldenCase& golden, const GoldenUse& use, const RunnerOptions& options) {
  SCOPED_TRACE("golden case " + golden.name);
  const std::vector<std::string> inputs = NamesOf(golden, use.inputs, "x");
  const std::vector<std::string> outputs = NamesOf(golden, use.outputs, "y");
  std::vector<Shape> shapes;
  for (const std::string& name : inputs) shapes.emplace_back(golden.Tensor(name).dims);
  RunnerOptions mine = options;
  mine.outputs = static_cast<int>(outputs.size());
  LayerRunner runner(golden.Text("layer"), shapes, mine);
  for (size_t i = 0; i < inputs.size(); ++i) {
    runner.SetInput(static_cast<int>(i), golden.Tensor(inputs[i]).values);
  }
  for (const auto& [i, name] : LearningParams(runner)) {
    runner.SetParam(i, golden.Tensor(name).values);
  }
  runner.Forward();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const GoldenTensor& wanted = golden.Tensor(outputs[i]);
    EXPECT_EQ(runner.OutputShape(static_cast<int>(i)), Shape(wanted.dims));
    ExpectNear(runner.Output(static_cast<int>(i)), wanted.values, use.bound, outputs[i]);
  }
  ExpectGoldenGradients(golden, inputs, outputs, use.bound, runner);
}

void ExpectGoldenFile(const std::string& file, float bound) {
  const std::vector<GoldenCase> cases = ReadGolden(file);
  EXPECT_FALSE(cases.empty());
  for (const GoldenCase& golden : cases) ExpectGolden(golden, {.bound = bound});
}

void ExpectInPlaceEqual(const std::string& prototxt, const std::vector<Shape>& inputs,
                        const std::vector<std::vector<float>>& values,
                        const RunnerOptions& options) {
  LayerChecks::Get().Made(TypeIn(prototxt), LayerCheck::kInPlace);
  std::vector<std::vector<float>> y, dx;
  for (const bool in_place : {false, true}) {
    RunnerOptions mine = options;
    mine.in_place = in_place;
    LayerRunner runner(prototxt, inputs, mine);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool given = i < values.size() && !values[i].empty();
      runner.SetInput(
          static_cast<int>(i),
          given ? values[i]
                : LayerRunner::SomeValues(inputs[i].Count(), static_cast<uint32_t>(i) + 1));
    }
    runner.Forward();
    y.push_back(runner.Output());
    if (!options.training) continue;
    runner.Backward({LayerRunner::SomeValues(runner.OutputShape().Count(), 9)});
    dx.push_back(runner.InputGradient());
  }
  EXPECT_EQ(y[0], y[1]);
  if (!options.training) return;
  EXPECT_EQ(dx[0], dx[1]);
}

namespace {

// Returns the outputs, then the gradients of the inputs, then the gradients of the parameters.
std::vector<std::vector<float>> RunWithMadeUp(const std::string& prototxt,
                                              const std::vector<Shape>& inputs, const Bf16Use& use,
                                              const RunnerOptions& options) {
  LayerRunner runner(prototxt, inputs, options);
  const auto values = [&](int64_t count, uint32_t stream) {
    return LayerRunner::SomeValues(count, stream, use.kink, use.gap);
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool given = i < use.inputs.size() && !use.inputs[i].empty();
    runner.SetInput(
        static_cast<int>(i),
        given ? use.inputs[i] : values(inputs[i].Count(), static_cast<uint32_t>(i) + 1));
  }
  for (const auto& [i, name] : LearningParams(runner)) {
    runner.SetParam(
        i, LayerRunner::SomeValues(runner.ParamAt(i).count(), static_cast<uint32_t>(i) + 50));
  }
  runner.Forward();
  std::vector<std::vector<float>> results;
  for (int i = 0; i < options.outputs; ++i) results.push_back(runner.Output(i));
  if (!options.training) return results;
  std::vector<std::vector<float>> seeds;
  for (int i = 0; i < options.outputs; ++i) {
    seeds.push_back(
        LayerRunner::SomeValues(runner.OutputShape(i).Count(), static_cast<uint32_t>(i) + 90));
  }
  runner.Backward(seeds);
  for (size_t i = 0; i < inputs.size(); ++i) {
    results.push_back(runner.InputGradient(static_cast<int>(i)));
  }
  for (const auto& [i, name] : LearningParams(runner)) results.push_back(runner.ParamGradient(i));
  return results;
}

}  // namespace

void ExpectBf16Near(const std::string& prototxt, const std::vector<Shape>& inputs,
                    const Bf16Use& use, const RunnerOptions& options) {
  LayerChecks::Get().Made(TypeIn(prototxt), LayerCheck::kBf16);
  const auto expected = RunWithMadeUp(prototxt, inputs, use, options);
  for (const DType type : StoredTypes()) {
    if (type == DType::kF32) continue;
    const char* const name = type == DType::kF16 ? "FLOAT16" : "BFLOAT16";
    const auto actual =
        RunWithMadeUp(Join(prototxt, " forward_type: ", name), inputs, use, options);
    for (size_t i = 0; i < expected.size(); ++i) {
      ExpectNear(actual[i], expected[i], BoundOf(type, 1e-5f, use.bound),
                 Join(name, ", result ", i));
    }
  }
}

}  // namespace trainer
