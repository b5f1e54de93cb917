#include "trainer/inference/boltzmann_machine.h"

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

const Param& ParamOf(const Net& net, const LayerSpec& layer, int index) {
  const auto& entries = layer.proto().param();
  const bool named = index < entries.size() && !entries[index].name().empty();
  const Param* const param =
      net.store().Find(named ? entries[index].name() : Join(layer.name(), ":", index));
  if (param == nullptr) throw Error(ErrorCode::kInternal, "an RBM layer without its weights");
  return *param;
}

}  // namespace

std::vector<BoltzmannMachine> FindMachines(const Net& net) {
  std::vector<BoltzmannMachine> machines;
  for (int i = 0; i < net.NumLayers(); ++i) {
    const LayerSpec& spec = net.LayerAt(i);
    const caffe::RBMParameter& param = spec.proto().rbm_param();
    if (spec.type() != "RBM" || param.output() != caffe::RBMParameter::HIDDEN) continue;
    const Param& w = ParamOf(net, spec, 0);
    machines.push_back({i,
                        spec.name(),
                        {w.shape[1], w.shape[0], param.visible() == caffe::RBMParameter::GAUSSIAN},
                        {w.weight, ParamOf(net, spec, 1).weight, ParamOf(net, spec, 2).weight}});
  }
  return machines;
}

}  // namespace trainer
