#include "trainer/analysis/summary/net_summary.h"

#include <memory>
#include <utility>

#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/device.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/net/compile.h"

namespace trainer {
namespace {

// Returns outputs, parameters, work and bytes of one layer. Parameters that layers share count for
// the layer that owns them.
NetSummary::Layer SummarizeLayer(const Graph& graph, const Node& node) {
  const caffe::LayerParameter& proto = node.spec.proto();
  NetSummary::Layer layer;
  layer.name = node.spec.name();
  layer.type = node.spec.type();
  layer.macs = node.layer->Macs();
  for (int k = 0; k < proto.top_size(); ++k) {
    const Tensor value = graph.Find(proto.top(k));
    const bool in_place = k < proto.bottom_size() && proto.bottom(k) == proto.top(k);
    layer.outputs.push_back({proto.top(k), value.shape, value.dtype, in_place});
    layer.bytes += static_cast<size_t>(value.shape.Count()) * SizeOf(value.dtype);
  }
  for (const Param* param : graph.params) {
    if (param->layer == layer.name) layer.params += param->count();
  }
  return layer;
}

// Returns a layer without a name whose parameters, work and memory are the sums over all layers.
NetSummary::Layer SumOfLayers(const NetSummary& summary) {
  NetSummary::Layer total;
  for (const NetSummary::Layer& layer : summary.layers) {
    total.params += layer.params;
    total.macs += layer.macs;
    total.bytes += layer.bytes;
  }
  return total;
}

// Returns "64x1x28x28", or "1" for a single number.
std::string LengthsText(const Shape& shape) {
  std::vector<std::string> lengths;
  for (int axis = 0; axis < shape.Rank(); ++axis) lengths.push_back(Join(shape[axis]));
  return lengths.empty() ? "1" : JoinList(lengths, "x");
}

// Returns names and shapes of the outputs. A name is left out if it is the layer's or its input's,
// or was made up for a Split.
std::string OutputsText(const NetSummary::Layer& layer) {
  if (layer.type == "Split") {
    return Join(layer.outputs.size(), " of ", LengthsText(layer.outputs[0].shape));
  }
  std::vector<std::string> texts;
  for (const NetSummary::Output& output : layer.outputs) {
    texts.push_back(LengthsText(output.shape));
    if (output.name != layer.name && !output.in_place) {
      texts.back() = Join(output.name, " ", texts.back());
    }
    if (output.dtype != DType::kF32) texts.back() += Join(" ", NameOf(output.dtype));
  }
  return EscapeControl(JoinList(texts));
}

}  // namespace

NetSummary SummarizeNet(const NetSpec& spec, const caffe::NetState& state) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  ParamStore params(*device);
  const std::unique_ptr<const Graph> graph =
      Compile(spec, {.state = state, .log = false}, *device, params);
  NetSummary summary;
  summary.net = graph->name;
  summary.arena_bytes = graph->memory.arena_bytes;
  for (const Node& node : graph->nodes) summary.layers.push_back(SummarizeLayer(*graph, node));
  return summary;
}

std::string ToText(const NetSummary& summary) {
  Table table({"layer", "type", "outputs", "parameters", "MFLOP", "memory"});
  table.InBytes({"memory"}).LeaveOut({"type", "memory"});
  const auto add = [&](const std::string& name, const std::string& outputs,
                       const NetSummary::Layer& layer) {
    table.Add({EscapeControl(name), layer.type, outputs,
               layer.params == 0 ? "" : Join(layer.params),
               layer.macs == 0 ? "" : Fixed(2e-6 * static_cast<double>(layer.macs), 2),
               layer.bytes == 0 ? "" : Join(layer.bytes)});
  };
  for (const NetSummary::Layer& layer : summary.layers) add(layer.name, OutputsText(layer), layer);
  add("together", "", SumOfLayers(summary));
  return Join(EscapeControl(summary.net), ": ", summary.layers.size(), " layers\n\n",
              table.ToString(), "\nMFLOP: of one forward pass; a multiply-add counts as two.\n",
              "Values share memory: all values and scratch together need ",
              Bytes(summary.arena_bytes), ".\n");
}

Json ToJson(const NetSummary& summary) {
  Json layers = Json::Array();
  for (const NetSummary::Layer& layer : summary.layers) {
    Json outputs = Json::Array();
    for (const NetSummary::Output& output : layer.outputs) {
      Json dims = Json::Array();
      for (int axis = 0; axis < output.shape.Rank(); ++axis) dims.Push(output.shape[axis]);
      outputs.Push(Json::Object()
                       .Set("name", output.name)
                       .Set("shape", std::move(dims))
                       .Set("storage", NameOf(output.dtype)));
    }
    layers.Push(Json::Object()
                    .Set("name", layer.name)
                    .Set("type", layer.type)
                    .Set("outputs", std::move(outputs))
                    .Set("parameters", layer.params)
                    .Set("flop", 2 * layer.macs)
                    .Set("bytes", layer.bytes));
  }
  const NetSummary::Layer total = SumOfLayers(summary);
  return Json::Object()
      .Set("net", summary.net)
      .Set("layers", std::move(layers))
      .Set("parameters", total.params)
      .Set("flop", 2 * total.macs)
      .Set("arena_bytes", summary.arena_bytes);
}

}  // namespace trainer
