#include "net_outputs.h"

namespace trainer {

std::vector<ReportedValue> ReadOutputs(const SolverContext& run, const Net& net, int number) {
  std::vector<ReportedValue> values;
  std::vector<float> host;
  if (run.partition != nullptr) {
    values = OutputsOfStage(run, net, number);
    for (const ReportedValue& value : values) host.push_back(value.value);
    run.group->AllReduce(host);
    for (size_t i = 0; i < values.size(); ++i) values[i].value = host[i];
    return values;
  }
  for (const NetOutput& output : net.outputs()) {
    host.resize(static_cast<size_t>(output.value.Count()));
    net.ReadNchw(output.value, host);
    for (const float value : host) values.push_back({output.name, value, output.loss_weight});
  }
  return values;
}

std::vector<ReportedValue> OutputsOfStage(const SolverContext& run, const Net& net, int number) {
  std::vector<ReportedValue> values;
  std::vector<float> host;
  size_t next = 0;
  for (const StageOutput& output : run.partition->WholeNet(number).outputs) {
    host.assign(static_cast<size_t>(output.count), -0.0f);
    if (output.stage == run.rank.rank) net.ReadNchw(net.outputs()[next++].value, host);
    for (const float value : host) values.push_back({output.name, value, output.loss_weight});
  }
  return values;
}

}  // namespace trainer
