#include "trainer/net/compile.h"

#include <algorithm>

#include "compile/activation_budget.h"
#include "compile/build.h"
#include "compile/compile_log.h"
#include "trainer/base/text/text.h"
#include "trainer/config/net_layers.h"

namespace trainer {
namespace {

// Each once, in the order of the nodes.
std::vector<Param*> ListParams(const Graph& graph) {
  std::vector<Param*> params;
  for (const Node& node : graph.nodes) {
    for (Param* param : node.params) {
      if (std::ranges::find(params, param) == params.end()) params.push_back(param);
    }
  }
  return params;
}

// Returns the layers with Split layers inserted. A pipeline stage got them with the whole net.
std::vector<LayerSpec> LayersOf(const NetSpec& spec, const NetOptions& options) {
  const bool is_part = !options.boundary.in.empty() || !options.boundary.out.empty();
  return is_part ? spec.layers : ConnectedLayers(spec, options.state);
}

NetOptions OptionsOf(const NetSpec& spec, const NetOptions& given) {
  NetOptions options = given;
  options.force_backward = given.force_backward || spec.proto.force_backward();
  options.recompute = given.recompute || spec.proto.recompute();
  options.fuse = given.fuse && !spec.proto.debug_info();
  return options;
}

}  // namespace

std::unique_ptr<const Graph> Compile(const NetSpec& spec, const NetOptions& given,
                                     const Device& device, ParamStore& params, SizeLimit limit) {
  auto graph = std::make_unique<Graph>();
  graph->name = spec.proto.name();
  graph->options = OptionsOf(spec, given);
  graph->debug_info = spec.proto.debug_info();
  const NetOptions& options = graph->options;
  const CompileLog log(options.log);
  log.Rules(spec, options.state);
  const std::vector<LayerSpec> layers = LayersOf(spec, options);
  if (layers.empty()) {
    throw Error(
        ErrorCode::kConfig, {spec.file},
        Join("net '", graph->name, "' has no layer in phase ",
             caffe::Phase_Name(options.state.phase()), "; check its include and exclude rules"));
  }
  log.Start(graph->name, layers, options.state);
  const CompileEnv env{options, device, params};
  BuildNodes(layers, AssignDtypes(spec, layers, device), env, *graph);
  ConnectBoundary(options.boundary, *graph);
  log.Layers(*graph);
  FuseEpilogues(env, *graph);
  MarkDifferentiable(options, *graph);
  OrderGradients(*graph);
  if (options.allow_reevaluation) MarkBatchOnlyNodes(*graph);
  PrepareNodes(env, *graph);
  PlanRecompute(options, *graph);
  AssignBuffers(options, *graph);
  FitActivationBudget(options, *graph);
  if (limit == SizeLimit::kDevice) {
    // The net may run on another machine, which the limits of this process do not concern.
    RequireDeviceMemory(*graph, device, params,
                        {device.AvailableBytes(), Join("the device (", device.Describe(), ")")});
  }
  graph->params = ListParams(*graph);
  return graph;
}

}  // namespace trainer
