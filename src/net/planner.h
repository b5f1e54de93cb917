#pragma once
// What a layer says of itself when it is planned, written into the graph.

#include <algorithm>
#include <string_view>

#include "graph.h"
#include "trainer/base/text.h"

namespace trainer {

// The context of one layer's Plan call.
class Planner final : public PlanContext {
 public:
  Planner(const NetOptions& options, const Device& device, ParamStore& params, Graph& graph,
          StepInfo& step, int number)
      : options_(options),
        device_(device),
        params_(params),
        graph_(graph),
        step_(step),
        number_(number) {}

  const Device& device() const override { return device_; }
  caffe::Phase phase() const override { return step_.spec.proto().phase(); }
  bool training() const override { return options_.training; }
  int NumIn() const override { return static_cast<int>(step_.in.size()); }
  int NumOut() const override { return static_cast<int>(step_.out.size()); }
  const Shape& In(int i) const override { return InValue(i).shape; }
  DType InType(int i) const override { return InValue(i).dtype; }

  void Out(int i, const Shape& shape, DType dtype) override {
    ValueInfo& value = OutValue(i);
    value.shape = shape;
    value.dtype = dtype;
    value.view_of = -1;
    CheckCount(value);
  }
  void OutIsView(int i, int j, const Shape& shape) override {
    const ValueInfo& input = InValue(j);
    if (shape.Count() != input.shape.Count()) {
      step_.spec.Fail(Join("output shape ", shape.ToString(), " does not hold the input's ",
                           input.shape.ToString()));
    }
    Out(i, shape, input.dtype);
    OutValue(i).view_of = step_.in[static_cast<size_t>(j)];
  }
  void Pin(int i) override { OutValue(i).pinned = true; }
  void Varies(int i) override {
    OutValue(i).varies = true;
    step_.varies = true;
  }
  void KeepInput(int i) override { step_.keep_in[static_cast<size_t>(i)] = true; }
  void KeepOutput(int i) override { step_.keep_out[static_cast<size_t>(i)] = true; }
  void AllowInPlace() override {
    step_.allow_in_place = true;
    step_.grad_in_place = 0;
  }
  void AllowGradInPlace(int i) override { step_.grad_in_place = i; }
  void NoGradient(int i) override { step_.no_gradient[static_cast<size_t>(i)] = true; }
  void Exact(int i) override { OutValue(i).exact = true; }
  void Scratch(size_t bytes) override {
    step_.scratch_bytes = std::max(step_.scratch_bytes, bytes);
  }
  void Workspace(size_t bytes) override { step_.workspace_bytes += bytes; }
  void State(size_t bytes) override { step_.state_bytes += bytes; }

  int Param(std::string_view name, const Shape& shape, const caffe::FillerParameter& filler,
            const ParamOptions& options) override;

 private:
  const ValueInfo& InValue(int i) const {
    return graph_.values[static_cast<size_t>(step_.in[static_cast<size_t>(i)])];
  }
  ValueInfo& OutValue(int i) {
    return graph_.values[static_cast<size_t>(step_.out[static_cast<size_t>(i)])];
  }
  void CheckCount(const ValueInfo& value) const {
    if (value.shape.Count() == 0) {
      step_.spec.Fail(
          Join("output '", value.name, "' would be empty: shape ", value.shape.ToString()));
    }
  }
  trainer::Param Describe(const Shape& shape, const ParamOptions& options, int index) const;
  void Share(trainer::Param& owner, const trainer::Param& wish);

  const NetOptions& options_;
  const Device& device_;
  ParamStore& params_;
  Graph& graph_;
  StepInfo& step_;
  int number_;
};

}  // namespace trainer
