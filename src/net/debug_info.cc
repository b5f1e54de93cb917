#include "debug_info.h"

#include <glog/logging.h>

#include <cmath>

#include "plain.h"
#include "trainer/base/text/text.h"

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

std::vector<float> ToHost(const Device& device, const float* values, int64_t count) {
  std::vector<float> host(static_cast<size_t>(count), 0.0f);
  if (values != nullptr) device.CopyToHost(host.data(), values, host.size() * sizeof(float));
  return host;
}

float MeanAbs(const Device& device, const Tensor& value) {
  std::vector<float> host(static_cast<size_t>(value.Count()));
  ReadPlain(device, value, host);
  return MeanOf(host);
}

}  // namespace

void DebugInfo::Forward(StepId id, const RunContext& run) const {
  const StepInfo& step = graph_.steps[id];
  for (size_t k = 0; k < step.out.size(); ++k) {
    const std::string& blob = graph_.values[step.out[k]].name;
    LogLine("Forward", step, Join("top blob ", blob, " data"),
            MeanAbs(device_, run.Out(static_cast<int>(k))));
  }
  for (size_t k = 0; k < step.params().size(); ++k) {
    const Param& param = *step.params()[k];
    LogLine("Forward", step, Join("param blob ", ParamName(step, k), " data"),
            MeanOf(ToHost(device_, param.weight, param.count())));
  }
}

void DebugInfo::Backward(StepId id, const RunContext& run) const {
  const StepInfo& step = graph_.steps[id];
  if (!step.needs_backward) return;
  for (size_t k = 0; k < step.in.size(); ++k) {
    const auto input = static_cast<int>(k);
    if (!run.WantsGradIn(input)) continue;
    const std::string& blob = graph_.values[step.in[k]].name;
    LogLine("Backward", step, Join("bottom blob ", blob, " diff"),
            MeanAbs(device_, run.GradIn(input)));
  }
  for (size_t k = 0; k < step.params().size(); ++k) {
    const Param& param = *step.params()[k];
    if (param.grad == nullptr) continue;
    LogLine("Backward", step, Join("param blob ", k, " diff"),
            MeanOf(ToHost(device_, param.grad, param.count())));
  }
}

void DebugInfo::Pass(const std::vector<Param*>& params) const {
  Norms data, diff;
  for (const Param* param : params) {
    data.Add(ToHost(device_, param->weight, param->count()));
    diff.Add(ToHost(device_, param->grad, param->count()));
  }
  // Caffe gives this line the level of an error, so that it shows in a log of errors only.
  LOG(ERROR) << Join("    [Backward] All net params (data, diff): L1 norm = (",
                     static_cast<float>(data.l1), ", ", static_cast<float>(diff.l1),
                     "); L2 norm = (", static_cast<float>(std::sqrt(data.squares)), ", ",
                     static_cast<float>(std::sqrt(diff.squares)), ")");
}

}  // namespace trainer
