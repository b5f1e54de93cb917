// The lines of debug_info: means of absolute values, read while each step's numbers are still in
// their memory.

#include <glog/logging.h>

#include <cmath>

#include "graph.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

struct Norms {
  double l1 = 0, squares = 0;
  void Add(std::span<const float> values) {
    for (const float value : values) {
      l1 += std::abs(value);
      squares += double{value} * value;
    }
  }
};

float MeanOf(std::span<const float> values) {
  Norms norms;
  norms.Add(values);
  return values.empty() ? 0 : static_cast<float>(norms.l1 / static_cast<double>(values.size()));
}

// What the user calls a parameter: its share name, else its number.
std::string ParamName(const StepInfo& step, size_t index) {
  const auto& specs = step.spec.proto().param();
  const auto i = static_cast<int>(index);
  return i < specs.size() && !specs[i].name().empty() ? specs[i].name() : Join(index);
}

void LogLine(const char* pass, const StepInfo& step, const std::string& what, float mean) {
  LOG(INFO) << EscapeControl(
      Join("    [", pass, "] Layer ", step.spec.name(), ", ", what, ": ", mean));
}

}  // namespace

float Net::MeanAbs(const Tensor& value) const {
  std::vector<float> host(static_cast<size_t>(value.Count()));
  ReadPlain(value, host);
  return MeanOf(host);
}

std::vector<float> Net::ToHost(const float* device_values, int64_t count) const {
  std::vector<float> host(static_cast<size_t>(count), 0.0f);
  if (device_values != nullptr) {
    device_.CopyToHost(host.data(), device_values, host.size() * sizeof(float));
  }
  return host;
}

void Net::LogForward(int i) const {
  const StepInfo& step = graph_->steps[static_cast<size_t>(i)];
  const RunContext& run = contexts_[static_cast<size_t>(i)];
  for (size_t k = 0; k < step.out.size(); ++k) {
    const std::string& blob = graph_->values[static_cast<size_t>(step.out[k])].name;
    LogLine("Forward", step, Join("top blob ", blob, " data"), MeanAbs(run.out_[k]));
  }
  for (size_t k = 0; k < step.params.size(); ++k) {
    const Param& param = *step.params[k];
    LogLine("Forward", step, Join("param blob ", ParamName(step, k), " data"),
            MeanOf(ToHost(param.weight, param.count())));
  }
}

void Net::LogBackward(int i) const {
  const StepInfo& step = graph_->steps[static_cast<size_t>(i)];
  const RunContext& run = contexts_[static_cast<size_t>(i)];
  if (!step.needs_backward) return;
  for (size_t k = 0; k < step.in.size(); ++k) {
    if (run.grad_in_[k].data == nullptr) continue;
    const std::string& blob = graph_->values[static_cast<size_t>(step.in[k])].name;
    LogLine("Backward", step, Join("bottom blob ", blob, " diff"), MeanAbs(run.grad_in_[k]));
  }
  for (size_t k = 0; k < step.params.size(); ++k) {
    const Param& param = *step.params[k];
    if (param.grad == nullptr) continue;
    LogLine("Backward", step, Join("param blob ", k, " diff"),
            MeanOf(ToHost(param.grad, param.count())));
  }
}

void Net::LogNorms() const {
  Norms data, diff;
  for (const Param* param : learnable_) {
    data.Add(ToHost(param->weight, param->count()));
    diff.Add(ToHost(param->grad, param->count()));
  }
  // Caffe gives this line the level of an error, so that it shows in a log of errors only.
  LOG(ERROR) << Join("    [Backward] All net params (data, diff): L1 norm = (",
                     static_cast<float>(data.l1), ", ", static_cast<float>(diff.l1),
                     "); L2 norm = (", static_cast<float>(std::sqrt(data.squares)), ", ",
                     static_cast<float>(std::sqrt(diff.squares)), ")");
}

}  // namespace trainer
