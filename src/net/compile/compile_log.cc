#include "compile/compile_log.h"

#include <glog/logging.h>

namespace trainer {
namespace {

// Returns why `rule` does not match `state`, or "".
std::string Mismatch(const caffe::NetStateRule& rule, const caffe::NetState& state,
                     const std::string& layer) {
  const std::string specified = Join(" specified by a rule in layer ", layer);
  if (rule.has_phase() && rule.phase() != state.phase()) {
    return Join("The NetState phase (", state.phase(), ") differed from the phase (", rule.phase(),
                ")", specified);
  }
  if (rule.has_min_level() && state.level() < rule.min_level()) {
    return Join("The NetState level (", state.level(), ") is above the min_level (",
                rule.min_level(), ")", specified);
  }
  if (rule.has_max_level() && state.level() > rule.max_level()) {
    return Join("The NetState level (", state.level(), ") is above the max_level (",
                rule.max_level(), ")", specified);
  }
  const auto has = [&](const std::string& stage) {
    return std::ranges::find(state.stage(), stage) != state.stage().end();
  };
  for (const std::string& stage : rule.stage()) {
    if (!has(stage)) return Join("The NetState did not contain stage '", stage, "'", specified);
  }
  for (const std::string& stage : rule.not_stage()) {
    if (has(stage)) return Join("The NetState contained a not_stage '", stage, "'", specified);
  }
  return "";
}

void LogStep(const Node& node, const Graph& graph, size_t& bytes) {
  const std::string name = EscapeControl(node.spec.name());
  LOG(INFO) << "Creating Layer " << name;
  for (const std::string& bottom : node.spec.proto().bottom())
    LOG(INFO) << name << " <- " << EscapeControl(bottom);
  for (int i = 0; i < node.spec.proto().top_size(); ++i) {
    const std::string& top = node.spec.proto().top(i);
    const bool in_place = i < node.spec.proto().bottom_size() && node.spec.proto().bottom(i) == top;
    LOG(INFO) << name << " -> " << EscapeControl(top) << (in_place ? " (in-place)" : "");
  }
  LOG(INFO) << "Setting up " << name;
  for (const ValueId out : node.out) {
    const Value& value = graph.values[out];
    LOG(INFO) << "Top shape: " << value.shape.ToString();
    if (value.loss_weight != 0) LOG(INFO) << "    with loss weight " << value.loss_weight;
    bytes += value.bytes();
  }
  LOG(INFO) << "Memory required for data: " << bytes;
  for (size_t i = 0; i < node.params.size(); ++i) {
    const Param& param = *node.params[i];
    if (param.layer != node.spec.name()) {
      LOG(INFO) << EscapeControl(Join("Sharing parameters '", param.key, "' owned by layer '",
                                      param.layer, "', param index ", param.index));
    }
  }
}

}  // namespace

void CompileLog::Rules(const NetSpec& spec, const caffe::NetState& state) const {
  if (!on_) return;
  for (const LayerSpec& layer : spec.layers) {
    const auto& rules = layer.proto().include();
    const bool kept = rules.empty() || std::ranges::any_of(rules, [&](const auto& rule) {
                        return Mismatch(rule, state, layer.name()).empty();
                      });
    if (kept) continue;
    for (const auto& rule : rules) LOG(INFO) << EscapeControl(Mismatch(rule, state, layer.name()));
  }
}

void CompileLog::Start(const std::string& name, const std::vector<LayerSpec>& layers,
                       const caffe::NetState& state) const {
  if (!on_) return;
  caffe::NetParameter net;
  net.set_name(name);
  *net.mutable_state() = state;
  for (const LayerSpec& layer : layers) {
    if (layer.type() != "Split") *net.add_layer() = layer.proto();
  }
  LOG(INFO) << "Initializing net from parameters: \n" << net.DebugString();
}

void CompileLog::Layers(const Graph& graph) const {
  if (!on_) return;
  size_t bytes = 0;
  for (const Node& node : graph.nodes) LogStep(node, graph, bytes);
}

void CompileLog::BackwardLayers(const Graph& graph) const {
  if (!on_) return;
  for (const NodeId id : graph.nodes.Ids() | std::views::reverse) {
    const Node& node = graph.nodes[id];
    LOG(INFO) << EscapeControl(node.spec.name())
              << (node.on_grad_path ? " needs backward computation."
                                    : " does not need backward computation.");
  }
}

void CompileLog::End(const Net& net, const caffe::NetState& state) const {
  if (sums_up_) {
    const auto layers = std::ranges::count_if(net.graph().nodes, [](const Node& node) {
      return node.spec.type() != "Split" && node.spec.type() != "Cast";
    });
    int64_t weights = 0;
    for (const Param* param : net.params()) weights += param->count();
    const auto again = std::ranges::count_if(
        net.graph().values, [](const Value& value) { return value.recompute_at.has_value(); });
    LOG(INFO) << EscapeControl(
        Join("Net ", net.graph().name, ", phase ", caffe::Phase_Name(state.phase()), ": ", layers,
             " layers, ", weights, " weights",
             again == 0 ? "" : Join(", ", again, again == 1 ? " output" : " outputs"),
             again == 0 ? "" : " computed again in backward"));
  }
  if (!on_) return;
  const MemoryPlan& plan = net.graph().memory;
  for (const NetOutput& output : net.outputs()) {
    LOG(INFO) << "This network produces output " << EscapeControl(output.name);
  }
  LOG(INFO) << "Network initialization done.";
  VLOG(1) << "Memory: " << plan.arena_bytes << " bytes shared, " << plan.unshared_bytes
          << " without sharing";
}

}  // namespace trainer
