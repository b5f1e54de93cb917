#include "trainer/inference/generative/rbm.h"

#include <algorithm>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns parameter number `index` of a layer: by its name if it has one and may be shared, else by
// layer and number.
const Param& ParamOf(const Net& net, const LayerSpec& layer, int index) {
  const auto& entries = layer.proto().param();
  const bool named = index < entries.size() && !entries[index].name().empty();
  const Param* const param =
      net.store().Find(named ? entries[index].name() : Join(layer.name(), ":", index));
  if (param == nullptr) throw Error(ErrorCode::kInternal, "an RBM layer without its weights");
  return *param;
}

}  // namespace

// The parameters of an RBM layer are the weights, (hidden, visible), and the biases of hidden and
// visible units, in this order.
std::vector<RbmModel> FindRbms(const Net& net) {
  std::vector<RbmModel> rbms;
  for (const Node& node : net.graph().nodes) {
    const LayerSpec& spec = node.spec;
    const caffe::RBMParameter& param = spec.proto().rbm_param();
    if (spec.type() != "RBM" || param.output() != caffe::RBMParameter::HIDDEN) continue;
    const Param& w = ParamOf(net, spec, 0);
    rbms.push_back({node.in[0],
                    spec.name(),
                    {w.shape[1], w.shape[0], param.visible() == caffe::RBMParameter::GAUSSIAN},
                    {w.weight, ParamOf(net, spec, 1).weight, ParamOf(net, spec, 2).weight}});
  }
  return rbms;
}

const RbmModel& SelectRbm(const std::vector<RbmModel>& rbms, const std::string& name) {
  std::vector<std::string> names;
  for (const RbmModel& rbm : rbms) names.push_back(rbm.name);
  if (rbms.empty()) {
    throw Error(ErrorCode::kConfig,
                "the net has no RBM layer with output HIDDEN; --samples estimates the likelihood "
                "of other models by a Parzen window");
  }
  if (name.empty() && rbms.size() == 1) return rbms[0];
  if (name.empty()) {
    throw Error(ErrorCode::kUsage,
                Join("the net has several RBM layers; choose one with --layer: ", JoinList(names)));
  }
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    throw Error(ErrorCode::kUsage,
                Join("--layer=", EscapeControl(name), " is not an RBM layer.",
                     DidYouMean(name, names), " The RBM layers are ", JoinList(names)));
  }
  return rbms[static_cast<size_t>(found - names.begin())];
}

}  // namespace trainer
