#include "net_log.h"

#include <glog/logging.h>

namespace trainer {
namespace {

// Why `rule` does not match `state`, or "".
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

void LogStep(const StepInfo& step, const Graph& graph, size_t& bytes) {
  const std::string name = EscapeControl(step.spec.name());
  LOG(INFO) << "Creating Layer " << name;
  for (const std::string& bottom : step.spec.proto().bottom())
    LOG(INFO) << name << " <- " << EscapeControl(bottom);
  for (int i = 0; i < step.spec.proto().top_size(); ++i) {
    const std::string& top = step.spec.proto().top(i);
    const bool in_place = i < step.spec.proto().bottom_size() && step.spec.proto().bottom(i) == top;
    LOG(INFO) << name << " -> " << EscapeControl(top) << (in_place ? " (in-place)" : "");
  }
  LOG(INFO) << "Setting up " << name;
  for (const ValueId out : step.out) {
    const ValueInfo& value = graph.values[out];
    LOG(INFO) << "Top shape: " << value.shape.ToString();
    if (value.loss_weight != 0) LOG(INFO) << "    with loss weight " << value.loss_weight;
    bytes += value.bytes();
  }
  LOG(INFO) << "Memory required for data: " << bytes;
  for (size_t i = 0; i < step.params().size(); ++i) {
    const Param& param = *step.params()[i];
    if (param.layer != step.spec.name()) {
      LOG(INFO) << EscapeControl(Join("Sharing parameters '", param.key, "' owned by layer '",
                                      param.layer, "', param index ", param.index));
    }
  }
}

}  // namespace

void NetLog::Rules(const NetSpec& spec, const caffe::NetState& state) const {
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

void NetLog::Start(const std::string& name, const std::vector<LayerSpec>& layers,
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

void NetLog::Layers(const Graph& graph) const {
  if (!on_) return;
  size_t bytes = 0;
  for (const StepInfo& step : graph.steps) LogStep(step, graph, bytes);
}

void NetLog::Gradients(const Graph& graph) const {
  if (!on_) return;
  for (const StepId id : graph.steps.Ids() | std::views::reverse) {
    const StepInfo& step = graph.steps[id];
    LOG(INFO) << EscapeControl(step.spec.name())
              << (step.needs_backward ? " needs backward computation."
                                      : " does not need backward computation.");
  }
}

void NetLog::End(const Net& net, const caffe::NetState& state) const {
  if (sums_up_) {
    const auto layers = std::ranges::count_if(net.graph().steps, [](const StepInfo& step) {
      return step.spec.type() != "Split" && step.spec.type() != "Cast";
    });
    int64_t weights = 0;
    for (const Param* param : net.params()) weights += param->count();
    const auto again = std::ranges::count_if(
        net.graph().values, [](const ValueInfo& value) { return value.recomputed_at.has_value(); });
    LOG(INFO) << EscapeControl(
        Join("Net ", net.name(), ", phase ", caffe::Phase_Name(state.phase()), ": ", layers,
             " layers, ", weights, " weights",
             again == 0 ? "" : Join(", ", again, again == 1 ? " output" : " outputs"),
             again == 0 ? "" : " computed again in backward"));
  }
  if (!on_) return;
  const MemoryPlan& plan = net.memory_plan();
  for (const NetOutput& output : net.outputs()) {
    LOG(INFO) << "This network produces output " << EscapeControl(output.name);
  }
  LOG(INFO) << "Network initialization done.";
  VLOG(1) << "Memory: " << plan.arena_bytes << " bytes shared, " << plan.separate_bytes
          << " without sharing";
}

}  // namespace trainer
