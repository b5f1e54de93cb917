#include "trainer/net/debug_info.h"

#include <glog/logging.h>

#include <cmath>

#include "io/nchw_values.h"
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

// The name of a parameter in the log: its share name, else its index.
std::string ParamName(const Node& node, size_t index) {
  const auto& specs = node.spec.proto().param();
  const auto i = static_cast<int>(index);
  return i < specs.size() && !specs[i].name().empty() ? specs[i].name() : Join(index);
}

void LogLine(const char* pass, const Node& node, const std::string& what, float mean) {
  LOG(INFO) << EscapeControl(
      Join("    [", pass, "] Layer ", node.spec.name(), ", ", what, ": ", mean));
}

std::vector<float> ToHost(const Device& device, const float* values, int64_t count) {
  std::vector<float> host(static_cast<size_t>(count), 0.0f);
  if (values != nullptr) device.CopyToHost(host.data(), values, host.size() * sizeof(float));
  return host;
}

float MeanAbs(const Device& device, const Tensor& value) {
  std::vector<float> host(static_cast<size_t>(value.Count()));
  ReadNchw(device, value, host);
  return MeanOf(host);
}

void LogForward(const Net& net, const Node& node, const RunContext& run) {
  for (size_t k = 0; k < node.out.size(); ++k) {
    const std::string& blob = net.graph().values[node.out[k]].name;
    LogLine("Forward", node, Join("top blob ", blob, " data"),
            MeanAbs(net.device(), run.Output(static_cast<int>(k))));
  }
  for (size_t k = 0; k < node.params.size(); ++k) {
    const Param& param = *node.params[k];
    LogLine("Forward", node, Join("param blob ", ParamName(node, k), " data"),
            MeanOf(ToHost(net.device(), param.weight, param.count())));
  }
}

void LogBackward(const Net& net, const Node& node, const RunContext& run) {
  if (!node.on_grad_path) return;
  for (size_t k = 0; k < node.in.size(); ++k) {
    const auto input = static_cast<int>(k);
    if (!run.NeedsGradInput(input)) continue;
    const std::string& blob = net.graph().values[node.in[k]].name;
    LogLine("Backward", node, Join("bottom blob ", blob, " diff"),
            MeanAbs(net.device(), run.GradInput(input)));
  }
  for (size_t k = 0; k < node.params.size(); ++k) {
    const Param& param = *node.params[k];
    if (param.grad == nullptr) continue;
    LogLine("Backward", node, Join("param blob ", k, " diff"),
            MeanOf(ToHost(net.device(), param.grad, param.count())));
  }
}

void LogPass(const Net& net) {
  Norms data, diff;
  for (const Param* param : net.params()) {
    data.Add(ToHost(net.device(), param->weight, param->count()));
    diff.Add(ToHost(net.device(), param->grad, param->count()));
  }
  // Caffe logs this line as an error, so that a log of errors only shows it as well.
  LOG(ERROR) << Join("    [Backward] All net params (data, diff): L1 norm = (",
                     static_cast<float>(data.l1), ", ", static_cast<float>(diff.l1),
                     "); L2 norm = (", static_cast<float>(std::sqrt(data.squares)), ", ",
                     static_cast<float>(std::sqrt(diff.squares)), ")");
}

void LogNode(const Net& net, NodeId id, Direction direction, const std::function<void()>& run) {
  run();
  const Node& node = net.graph().nodes[id];
  const RunContext& forward = net.context(id, Direction::kForward);
  if (forward.virtual_rank() != 0) return;
  if (direction == Direction::kForward) return LogForward(net, node, forward);
  LogBackward(net, node, net.context(id, direction));
  if (id.number == 0) LogPass(net);
}

}  // namespace

const NodeHook* DebugInfoHook() {
  static const NodeHook hook = LogNode;
  return &hook;
}

}  // namespace trainer
