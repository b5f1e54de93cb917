// When which gradient is final. Fused layers run backward with the one that computes them, and a
// shared weight is final with the last of its users, so the order of the layers in the file does
// not tell.

#include <algorithm>
#include <functional>

#include "debug_info.h"
#include "run_state.h"
#include "scaled_loss.h"

namespace trainer {
namespace {

// The layer that is the last to add to the gradient, see Param::last_adder.
int LastAdder(const Param* param, const Graph& graph) {
  int last = graph.steps.size();
  for (const StepId id : graph.steps.Ids()) {
    const StepInfo& step = graph.steps[id];
    if (std::ranges::find(step.params(), param) == step.params().end()) continue;
    const StepId runs = step.fused_into ? step.fused_into : id;
    if (graph.steps[runs].runs_backward) last = std::min(last, runs.number);
  }
  return last;
}

}  // namespace

void OrderGradients(Graph& graph) {
  for (Param* param : graph.fresh) param->last_adder = LastAdder(param, graph);
}

void Net::ListSlices() {
  if (!options_.training) return;
  struct Finished {
    int layer;
    Param* param;
  };
  std::vector<Finished> order;
  for (Param* param : learnable_) {
    if (param->grad != nullptr) order.push_back({LastAdder(param, *graph_), param});
  }
  std::ranges::sort(order, [](const Finished& a, const Finished& b) {
    return a.layer != b.layer ? a.layer > b.layer
                              : std::less<const float*>()(a.param->grad, b.param->grad);
  });
  for (const Finished& entry : order) finished_.push_back(entry.param);
  for (size_t i = 0; i < order.size(); ++i) {
    Param* const* const param = &finished_[i];
    const auto floats = static_cast<size_t>(ParamStore::Padded((*param)->count()));
    GradientSlice* const last = slices_.empty() ? nullptr : &slices_.back();
    if (last != nullptr && last->layer == order[i].layer &&
        last->values.data() + last->values.size() == (*param)->grad) {
      last->values = {last->values.data(), last->values.size() + floats};
      last->params = {last->params.data(), last->params.size() + 1};
    } else {
      slices_.push_back({{(*param)->grad, floats}, {param, 1}, order[i].layer});
    }
  }
}

void Net::Backward(GradientSink* sink) {
  if (loss_scale_ != nullptr) ScaleLossGradients(*graph_, *program_, device_, loss_scale_);
  size_t next = 0;
  const auto tell = [&](int layer) {
    for (; next < slices_.size() && slices_[next].layer >= layer; ++next) {
      sink->OnGradientReady(static_cast<int>(next), slices_[next].values);
    }
  };
  GradientSink* const at_once = LogsDebugInfo() ? nullptr : sink;
  if (at_once != nullptr) tell(NumLayers());
  for (int s = NumLayers(); s-- > 0;) {
    BackwardLayer(s);
    if (at_once != nullptr) tell(s);
    if (LogsDebugInfo())
      DebugInfo(*graph_, device_).Backward(StepId(s), state_->Of(StepId(s)).backward);
  }
  if (LogsDebugInfo()) DebugInfo(*graph_, device_).Pass(learnable_);
  if (sink != nullptr) tell(0);
}

}  // namespace trainer
