// The backward pass, which tells a sink when each slice of gradients is final.

#include <algorithm>
#include <functional>

#include "compile/build.h"
#include "execute/dynamic_shapes.h"
#include "execute/scaled_loss.h"

namespace trainer {

void Net::MakeSlices() {
  if (!options_.training) return;
  struct Finished {
    int layer;
    Param* param;
  };
  std::vector<Finished> order;
  for (Param* param : graph_->params) {
    if (param->grad != nullptr) order.push_back({FinalGradNode(param, *graph_), param});
  }
  std::ranges::sort(order, [](const Finished& a, const Finished& b) {
    return a.layer != b.layer ? a.layer > b.layer
                              : std::less<const float*>()(a.param->grad, b.param->grad);
  });
  for (const Finished& entry : order) slice_params_.push_back(entry.param);
  for (size_t i = 0; i < order.size(); ++i) {
    Param* const* const param = &slice_params_[i];
    const auto floats = static_cast<size_t>(ParamStore::PaddedCount((*param)->count()));
    GradientSlice* const last = slices_.empty() ? nullptr : &slices_.back();
    if (last != nullptr && last->final_node == order[i].layer &&
        last->values.data() + last->values.size() == (*param)->grad) {
      last->values = {last->values.data(), last->values.size() + floats};
      last->params = {last->params.data(), last->params.size() + 1};
    } else {
      slices_.push_back({{(*param)->grad, floats}, {param, 1}, order[i].layer});
    }
  }
}

void Net::RunBackward(GradientSink* sink) {
  if (loss_scale_ != nullptr) ScaleSeedGradients(*graph_, *bindings_, device_, loss_scale_);
  size_t next = 0;
  const auto tell = [&](int layer) {
    for (; next < slices_.size() && slices_[next].final_node >= layer; ++next) {
      sink->OnGradientReady(static_cast<int>(next), slices_[next].values);
    }
  };
  GradientSink* const at_once = hooks_.empty() ? sink : nullptr;
  if (at_once != nullptr) tell(graph_->nodes.size());
  for (int s = graph_->nodes.size(); s-- > 0;) {
    RunNode(NodeId(s), Direction::kBackward);
    if (at_once != nullptr) tell(s);
  }
  if (sink != nullptr) tell(0);
}

}  // namespace trainer
